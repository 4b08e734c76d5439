;; A handler that does what its state says: any action of the ABI with any arguments.
;;
;; state: u32 header script, u32 completion script, u32 shift, u32 unused, then 16 u32 payload scripts: packet k runs
;; script (offset >> shift) & 15. A script is the address of records of 64 bytes:
;;
;;   0 u32 operation: an import in the order of docs/abi.md from 1, or one of those below; 0 ends the script
;;   8 u64 result of the operation
;;  16 u64 arguments, up to five; of operation 0: the return code
;;
;; 30 spin a times, 31 trap, 32 loop for ever, 33 recurse for ever, 34 load from a, 35 copy c bytes from b to a (b = 0: from
;; the argument record), 36 store b at a, 37 copy c bytes of the user header or the packet at a, 38 skip b records if the
;; u64 at a is not 0.
;;
;; Compiled with wat2wasm --debug-names actions.wat.
(module
  (import "spin" "dma_to_host" (func $dma_to_host (param i32 i64 i32 i32) (result i32)))
  (import "spin" "dma_from_host" (func $dma_from_host (param i32 i64 i32 i32) (result i32)))
  (import "spin" "dma_to_host_nb" (func $dma_to_host_nb (param i32 i64 i32 i32) (result i32)))
  (import "spin" "dma_from_host_nb" (func $dma_from_host_nb (param i32 i64 i32 i32) (result i32)))
  (import "spin" "dma_cas" (func $dma_cas (param i32 i64 i64 i64 i32) (result i32)))
  (import "spin" "dma_cas_nb" (func $dma_cas_nb (param i32 i64 i64 i64 i32) (result i32)))
  (import "spin" "dma_fadd" (func $dma_fadd (param i32 i64 i64 i32) (result i32)))
  (import "spin" "dma_fadd_nb" (func $dma_fadd_nb (param i32 i64 i64 i32) (result i32)))
  (import "spin" "dma_test" (func $dma_test (param i32) (result i32)))
  (import "spin" "dma_wait" (func $dma_wait (param i32) (result i32)))
  (import "spin" "cas" (func $cas (param i32 i64 i64) (result i32)))
  (import "spin" "fadd" (func $fadd (param i32 i64) (result i64)))
  (import "spin" "yield" (func $yield))
  (import "spin" "put_from_host" (func $put_from_host (param i32) (result i32)))
  (import "spin" "put_from_device" (func $put_from_device (param i32) (result i32)))
  (import "spin" "get_from_host" (func $get_from_host (param i32) (result i32)))
  (import "spin" "get_from_device" (func $get_from_device (param i32) (result i32)))
  (import "spin" "atomic_from_host" (func $atomic_from_host (param i32) (result i32)))
  (import "spin" "atomic_from_device" (func $atomic_from_device (param i32) (result i32)))
  (import "spin" "ct_get" (func $ct_get (param i32 i32) (result i32)))
  (import "spin" "ct_set" (func $ct_set (param i32 i64 i64) (result i32)))
  (import "spin" "ct_inc" (func $ct_inc (param i32 i64 i64) (result i32)))
  (import "spin" "ack" (func $ack (param i32) (result i32)))
  (import "spin" "timer" (func $timer (param i64 i32) (result i32)))
  (import "spin" "to_self" (func $to_self (param i32) (result i32)))
  (import "spin" "num_hpus" (func $num_hpus (result i32)))
  (import "spin" "my_hpu" (func $my_hpu (result i32)))
  (import "spin" "cycles" (func $cycles (result i64)))
  (import "spin" "log" (func $log (param i32 i32)))
  (memory (export "memory") 1)
  (global (export "__stack_pointer") (mut i32) (i32.const 4096))

  (func $recurse (param i32) (result i32)
    (i32.add (call $recurse (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))

  (func $a (param $p i32) (result i32) (i32.load offset=16 (local.get $p)))

  (func $run (param $args i32) (param $p i32) (result i32)
    (local $i i64)
    (loop $next
      (block $done
      (block $skip
      (block $payload
      (block $store
      (block $copy
      (block $load
      (block $recursion
      (block $forever
      (block $trap
      (block $spin
      (block $log
      (block $cycles
      (block $my_hpu
      (block $num_hpus
      (block $to_self
      (block $timer
      (block $ack
      (block $ct_inc
      (block $ct_set
      (block $ct_get
      (block $atomic_from_device
      (block $atomic_from_host
      (block $get_from_device
      (block $get_from_host
      (block $put_from_device
      (block $put_from_host
      (block $yield
      (block $fadd
      (block $cas
      (block $dma_wait
      (block $dma_test
      (block $dma_fadd_nb
      (block $dma_fadd
      (block $dma_cas_nb
      (block $dma_cas
      (block $dma_from_host_nb
      (block $dma_to_host_nb
      (block $dma_from_host
      (block $dma_to_host
      (block $end
        (br_table $end $dma_to_host $dma_from_host $dma_to_host_nb $dma_from_host_nb $dma_cas $dma_cas_nb $dma_fadd $dma_fadd_nb $dma_test $dma_wait $cas $fadd $yield $put_from_host $put_from_device $get_from_host $get_from_device $atomic_from_host $atomic_from_device $ct_get $ct_set $ct_inc $ack $timer $to_self $num_hpus $my_hpu $cycles $log $spin $trap $forever $recursion $load $copy $store $payload $skip $done (i32.load (local.get $p)))
      ) (return (call $a (local.get $p)))
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_to_host (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i32.load offset=32 (local.get $p)) (i32.load offset=40 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_from_host (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i32.load offset=32 (local.get $p)) (i32.load offset=40 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_to_host_nb (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i32.load offset=32 (local.get $p)) (i32.load offset=40 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_from_host_nb (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i32.load offset=32 (local.get $p)) (i32.load offset=40 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_cas (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i64.load offset=32 (local.get $p)) (i64.load offset=40 (local.get $p)) (i32.load offset=48 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_cas_nb (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i64.load offset=32 (local.get $p)) (i64.load offset=40 (local.get $p)) (i32.load offset=48 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_fadd (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i64.load offset=32 (local.get $p)) (i32.load offset=40 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_fadd_nb (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i64.load offset=32 (local.get $p)) (i32.load offset=40 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_test (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $dma_wait (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $cas (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i64.load offset=32 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (call $fadd (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)))) (br $done)
      ) (call $yield) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $put_from_host (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $put_from_device (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $get_from_host (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $get_from_device (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $atomic_from_host (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $atomic_from_device (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $ct_get (i32.load offset=16 (local.get $p)) (i32.load offset=24 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $ct_set (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i64.load offset=32 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $ct_inc (i32.load offset=16 (local.get $p)) (i64.load offset=24 (local.get $p)) (i64.load offset=32 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $ack (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $timer (i64.load offset=16 (local.get $p)) (i32.load offset=24 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $to_self (i32.load offset=16 (local.get $p))))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $num_hpus))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.extend_i32_s (call $my_hpu))) (br $done)
      ) (i64.store offset=8 (local.get $p) (call $cycles)) (br $done)
      ) (call $log (i32.load offset=16 (local.get $p)) (i32.load offset=24 (local.get $p))) (br $done)
      ) (local.set $i (i64.load offset=16 (local.get $p)))
        (loop $spinning (br_if $spinning (i64.ne (local.tee $i (i64.sub (local.get $i) (i64.const 1))) (i64.const 0)))) (br $done)
      ) (unreachable)
      ) (loop $ever (br $ever))
      ) (drop (call $recurse (i32.const 0))) (br $done)
      ) (i64.store offset=8 (local.get $p) (i64.load (call $a (local.get $p)))) (br $done)
      ) (memory.copy (call $a (local.get $p))
          (select (i32.load offset=24 (local.get $p)) (local.get $args) (i32.load offset=24 (local.get $p)))
          (i32.load offset=32 (local.get $p))) (br $done)
      ) (i64.store (call $a (local.get $p)) (i64.load offset=24 (local.get $p))) (br $done)
      ) (memory.copy (call $a (local.get $p))
          (i32.load (i32.add (local.get $args) (i32.load offset=24 (local.get $p))))
          (i32.load offset=32 (local.get $p))) (br $done)
      ) (if (i64.ne (i64.load (call $a (local.get $p))) (i64.const 0))
          (then (local.set $p (i32.add (local.get $p) (i32.shl (i32.load offset=24 (local.get $p)) (i32.const 6))))))
      ) ;; done
      (local.set $p (i32.add (local.get $p) (i32.const 64)))
      (br $next))
    (unreachable))

  (func (export "header") (param $args i32) (param $state i32) (result i32)
    (call $run (local.get $args) (i32.load (local.get $state))))

  (func (export "completion") (param $args i32) (param $state i32) (result i32)
    (call $run (local.get $args) (i32.load offset=4 (local.get $state))))

  (func (export "payload") (param $args i32) (param $state i32) (result i32)
    (call $run (local.get $args) (i32.load offset=16 (i32.add (local.get $state) (i32.shl
      (i32.and (i32.wrap_i64 (i64.shr_u (i64.load offset=8 (local.get $args)) (i64.extend_i32_u (i32.load offset=8 (local.get $state)))))
        (i32.const 15)) (i32.const 2)))))))
