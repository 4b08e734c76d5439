;; A start function that traps.
(module (memory (export "memory") 1) (start $begin) (func $begin (unreachable))
  (func (export "payload") (param i32 i32) (result i32) (i32.const 0)))
