;; A data segment that does not fit in its memory.
(module (memory (export "memory") 1) (data (i32.const 65530) "too long")
  (func (export "payload") (param i32 i32) (result i32) (i32.const 0)))
