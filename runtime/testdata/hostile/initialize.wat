;; An _initialize that acts on the device.
(module (import "spin" "ct_inc" (func $ct_inc (param i32 i64 i64) (result i32))) (memory (export "memory") 1)
  (func (export "_initialize") (drop (call $ct_inc (i32.const 1) (i64.const 1) (i64.const 0))))
  (func (export "payload") (param i32 i32) (result i32) (i32.const 0)))
