;; Grows its memory at run time.
(module (memory (export "memory") 1)
  (func (export "payload") (param i32 i32) (result i32) (drop (memory.grow (i32.const 1))) (i32.const 0)))
