;; Declares 4 GiB of memory.
(module (memory (export "memory") 65536)
  (func (export "payload") (param i32 i32) (result i32) (i32.const 0)))
