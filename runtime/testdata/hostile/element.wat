;; An element segment that does not fit in its table.
(module (memory (export "memory") 1) (table 1 funcref) (elem (i32.const 1) $payload)
  (func $payload (export "payload") (param i32 i32) (result i32) (i32.const 0)))
