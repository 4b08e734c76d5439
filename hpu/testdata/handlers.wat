;; Handlers for the tests of package hpu. Assemble with: wat2wasm handlers.wat -o handlers.wasm
(module
  (import "spin" "dma_wait" (func $dma_wait (param i32) (result i32)))
  (import "spin" "dma_to_host" (func $dma_to_host (param i32 i64 i32 i32) (result i32)))
  (import "spin" "cycles" (func $cycles (result i64)))
  (import "spin" "cas" (func $cas (param i32 i64 i64) (result i32)))
  (import "spin" "fadd" (func $fadd (param i32 i64) (result i64)))
  (import "spin" "my_hpu" (func $my_hpu (result i32)))
  (import "spin" "num_hpus" (func $num_hpus (result i32)))
  (import "spin" "log" (func $log (param i32 i32)))
  (memory (export "memory") 1)
  (global $__stack_pointer (export "__stack_pointer") (mut i32) (i32.const 65536))
  (data (i32.const 16) "hello")

  ;; sum of the bytes of a payload record: base at 0, length at 4
  (func (export "sum") (param $args i32) (param $state i32) (result i32)
    (local $p i32) (local $end i32) (local $s i32)
    (local.set $p (i32.load (local.get $args)))
    (local.set $end (i32.add (local.get $p) (i32.load offset=4 (local.get $args))))
    (block $done
      (br_if $done (i32.eq (local.get $p) (local.get $end)))
      (loop $next
        (local.set $s (i32.add (local.get $s) (i32.load8_u (local.get $p))))
        (br_if $next (i32.ne (local.tee $p (i32.add (local.get $p) (i32.const 1))) (local.get $end)))))
    (local.get $s))

  ;; like sum, 8 bytes at a time into a checksum
  (func (export "xor") (param $args i32) (param $state i32) (result i32)
    (local $p i32) (local $end i32) (local $s i64)
    (local.set $p (i32.load (local.get $args)))
    (local.set $end (i32.add (local.get $p) (i32.load offset=4 (local.get $args))))
    (block $done
      (br_if $done (i32.eq (local.get $p) (local.get $end)))
      (loop $next
        (local.set $s (i64.xor (local.get $s) (i64.load (local.get $p))))
        (br_if $next (i32.ne (local.tee $p (i32.add (local.get $p) (i32.const 8))) (local.get $end)))))
    (i32.wrap_i64 (local.get $s)))

  ;; waits twice, keeps the results in its own stack frame, returns 10 * first + second
  (func (export "wait2") (param $args i32) (param $state i32) (result i32)
    (local $frame i32)
    (global.set $__stack_pointer (local.tee $frame (i32.sub (global.get $__stack_pointer) (i32.const 16))))
    (i32.store (local.get $frame) (call $dma_wait (local.get $args)))
    (i32.store offset=4 (local.get $frame) (call $dma_wait (local.get $args)))
    (global.set $__stack_pointer (i32.add (local.get $frame) (i32.const 16)))
    (i32.add (i32.mul (i32.load (local.get $frame)) (i32.const 10)) (i32.load offset=4 (local.get $frame))))

  (func (export "write") (param $args i32) (param $state i32) (result i32)
    (call $dma_to_host (i32.const 1) (i64.const 64) (local.get $args) (local.get $state)))

  (func (export "atomics") (param $addr i32) (param $state i32) (result i32)
    (drop (call $fadd (local.get $addr) (i64.const 5)))
    (call $cas (local.get $addr) (i64.const 5) (i64.const 9)))

  (func (export "hpu") (param i32 i32) (result i32)
    (i32.add (i32.mul (call $num_hpus) (i32.const 100)) (call $my_hpu)))

  (func (export "count") (param i32 i32) (result i32) (i32.wrap_i64 (call $cycles)))

  (func (export "say") (param i32 i32) (result i32) (call $log (local.get 0) (local.get 1)) (i32.const 0))

  (func $fib (param $n i32) (result i32)
    (if (i32.lt_s (local.get $n) (i32.const 2)) (then (return (local.get $n))))
    (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1))) (call $fib (i32.sub (local.get $n) (i32.const 2)))))
  (func (export "fib") (param $n i32) (param i32) (result i32) (call $fib (local.get $n)))

  (func (export "forever") (param i32 i32) (result i32) (loop $l (br $l)) (unreachable))
  (func (export "trap") (param i32 i32) (result i32) (unreachable))
  (func (export "load") (param i32 i32) (result i32) (i32.load (local.get 0)))
  (func (export "div") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
  (func $deep (export "deep") (param i32 i32) (result i32) (call $deep (local.get 0) (i32.add (local.get 1) (i32.const 1))))
  (func $gobble (export "gobble") (param i32 i32) (result i32)
    (global.set $__stack_pointer (i32.sub (global.get $__stack_pointer) (local.get 0)))
    (i32.store (global.get $__stack_pointer) (i32.const -1))
    (i32.const 0)))
