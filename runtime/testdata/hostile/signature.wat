;; A handler with another signature.
(module (memory (export "memory") 1)
  (func (export "payload") (param i32 i64) (result i32) (i32.const 0)))
