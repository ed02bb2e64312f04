//! What the machine computes and what it refuses, on short texts of PTX.

use std::fmt::Write;

use blindfold_ptx::{Fault, Launch, Memory, Module, Order, Wrong};

const ORDERS: [Order; 4] = [Order::Forward, Order::Backward, Order::Drawn(1), Order::Drawn(2)];

/// Memory for results, as the kernels under test use it.
#[repr(align(64))]
struct Output([u32; 256]);

/// A kernel with one pointer, `%rd1`; `%r1` is the thread, `%rd2` the address of its word and `%rd0` 4 times its number.
fn text(shared: &str, body: &str) -> String {
    let mut text = String::from(".version 9.0\n.target sm_90\n.address_size 64\n");
    writeln!(text, "{shared}").expect("text");
    text.push_str(
        ".visible .entry kernel(.param .u64 kernel_param_0) .maxntid 128, 1, 1 {\n\
         .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\n\
         ld.param.u64 %rd1, [kernel_param_0]; mov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %rd0, %r1, 4; add.s64 %rd2, %rd1, %rd0;\n",
    );
    text.push_str(body);
    text.push_str("\nret;\n}\n");
    text
}

fn run(text: &str, blocks: u32, threads: u32, order: Order) -> Result<Output, Fault> {
    let module = Module::new(text)?;
    let mut output = Box::new(Output([0; 256]));
    for (number, word) in output.0.iter_mut().enumerate() {
        *word = 1000 + number as u32;
    }
    let (memory, address) = (Memory::default(), (&raw mut output.0).cast::<u8>());
    // SAFETY: lives until the end of this function, and is looked at after the launch.
    unsafe { memory.add(address, 1024) };
    let argument = (address as u64).to_le_bytes();
    let launch =
        Launch { kernel: "kernel", blocks, threads, arguments: &[&argument], foreign_memory: false, order };
    // SAFETY: no foreign memory.
    unsafe { module.launch(&memory, &launch) }?;
    Ok(*output)
}

/// What every order must give.
fn result(body: &str, threads: u32) -> Vec<u32> {
    let results = ORDERS.map(|order| run(&text("", body), 1, threads, order).map(|output| output.0.to_vec()));
    assert!(results.iter().all(|result| result == &results[0]), "the order changes the result");
    results[0].clone().expect("a sound kernel")
}

fn wrong(shared: &str, body: &str, threads: u32) -> Wrong {
    match run(&text(shared, body), 1, threads, Order::Forward) {
        Err(Fault::Execution { what, .. }) => what,
        Err(other) => panic!("another fault: {other}"),
        Ok(_) => panic!("no fault"),
    }
}

fn fault(body: &str) -> Fault {
    match run(&text("", body), 1, 32, Order::Forward) {
        Err(fault) => fault,
        Ok(_) => panic!("no fault"),
    }
}

/// One instruction on words, in every lane.
fn words(instruction: &str, a: u32, b: u32, c: u32) -> u32 {
    let body = format!(
        "mov.u32 %r2, {a}; mov.u32 %r3, {b}; mov.u32 %r4, {c}; {instruction} st.global.u32 [%rd2], %r5;"
    );
    let results = result(&body, 32);
    assert!(results[..32].iter().all(|word| *word == results[0]));
    results[0]
}

#[test]
fn carries_go_through_chains_of_either_kind() {
    let sum = "add.cc.u32 %r6, %r2, %r3; addc.cc.u32 %r6, %r4, %r4; addc.u32 %r5, 7, 0;";
    for (a, b, c) in
        [(u32::MAX, 1, u32::MAX), (u32::MAX, 1, 0x7fff_ffff), (5, 6, 0x8000_0000), (u32::MAX, 1, 0)]
    {
        let first = (u64::from(a) + u64::from(b)) >> 32;
        let carry = (2 * u64::from(c) + first) >> 32;
        assert_eq!(words(sum, a, b, c), 7 + carry as u32);
    }
    let difference = "sub.cc.u32 %r6, %r2, %r3; subc.cc.u32 %r6, %r4, %r3; subc.u32 %r5, 7, 0;";
    for (a, b, c) in [(0, 1, 1), (0, 1, 2), (1, 1, 1), (u32::MAX, 0, 0), (0, u32::MAX, u32::MAX)] {
        let first = u32::from(a < b);
        let borrow = u32::from(u64::from(c) < u64::from(b) + u64::from(first));
        assert_eq!(words(difference, a, b, c), 7 - borrow);
    }
    for (a, b, c) in
        [(u32::MAX, u32::MAX, u32::MAX), (0x1234_5678, 0x9abc_def0, 0xffff_0000), (0, 9, u32::MAX)]
    {
        let product = u64::from(a) * u64::from(b);
        let low = "mad.lo.cc.u32 %r6, %r2, %r3, %r4; madc.hi.u32 %r5, %r2, %r3, %r4;";
        let carry = u32::from((product as u32).checked_add(c).is_none());
        let high = ((product >> 32) as u32).wrapping_add(c);
        assert_eq!(words(low, a, b, c), high.wrapping_add(carry));
        let chain = "mad.hi.cc.u32 %r6, %r2, %r3, %r4; madc.lo.cc.u32 %r6, %r2, %r3, %r4; madc.hi.cc.u32 %r6, %r2, %r3, \
                     %r4; addc.u32 %r5, 0, 0;";
        let first = ((product >> 32) + u64::from(c)) >> 32;
        let second = (u64::from(product as u32) + u64::from(c) + first) >> 32;
        assert_eq!(words(chain, a, b, c), (((product >> 32) + u64::from(c) + second) >> 32) as u32);
    }
}

#[test]
fn flags_are_not_read_where_none_was_written() {
    for chain in [
        "addc.u32 %r5, %r1, %r1;",
        "add.cc.u32 %r5, %r1, %r1; subc.u32 %r5, %r1, %r1;",
        "add.cc.u32 %r5, %r1, %r1; $L: addc.u32 %r5, %r1, %r1; setp.eq.u32 %p1, %r1, 40; @%p1 bra $L;",
    ] {
        assert!(matches!(fault(chain), Fault::Flag { .. }), "{chain}");
    }
}

#[test]
fn single_operations() {
    assert_eq!(words("mul.hi.u32 %r5, %r2, %r3;", u32::MAX, u32::MAX, 0), u32::MAX - 1);
    assert_eq!(words("mul.hi.s32 %r5, %r2, %r3;", u32::MAX, 5, 0), u32::MAX);
    assert_eq!(words("mad.lo.s32 %r5, %r2, %r3, %r4;", 0x10001, 0x10001, 5), 0x20006);
    assert_eq!(words("shr.s32 %r5, %r2, %r3;", 0x8000_0000, 40, 0), u32::MAX);
    assert_eq!(words("shr.u32 %r5, %r2, %r3;", 0x8000_0000, 32, 0), 0);
    assert_eq!(words("shl.b32 %r5, %r2, %r3;", 3, 31, 0), 0x8000_0000);
    assert_eq!(words("bfi.b32 %r5, %r2, %r3, 1, 31;", 0xffff_fff0, 1, 0), 0xffff_ffe1);
    assert_eq!(words("abs.s32 %r5, %r2;", 0xffff_fffd, 0, 0), 3);
    assert_eq!(words("min.u32 %r6, %r2, %r3; max.u32 %r5, %r6, %r4;", 9, 4, 5), 5);
    assert_eq!(words("div.u32 %r6, %r2, %r3; rem.u32 %r5, %r6, %r4;", 100, 7, 5), 4);
    assert_eq!(words("setp.lt.s32 %p1, %r2, %r3; selp.b32 %r5, 1, 2, %p1;", u32::MAX, 0, 0), 1);
    assert_eq!(words("setp.lt.u32 %p1, %r2, %r3; selp.b32 %r5, 1, 2, %p1;", u32::MAX, 0, 0), 2);
    assert_eq!(
        words(
            "mov.pred %p2, -1; not.pred %p3, %p2; xor.pred %p1, %p2, %p3; selp.b32 %r5, 1, 2, %p1;",
            0,
            0,
            0
        ),
        1
    );
    let wide = "mul.wide.u32 %rd5, %r2, %r3; shr.u64 %rd6, %rd5, 32; cvt.u32.u64 %r5, %rd6;";
    assert_eq!(words(wide, u32::MAX, u32::MAX, 0), u32::MAX - 1);
    let packed = "mov.b64 %rd5, {%r2, %r3}; mov.b64 {%r6, %r7}, %rd5; sub.s32 %r5, %r7, %r6;";
    assert_eq!(words(packed, 5, 9, 0), 4);
    // Of 16 bits: extended by zeros in registers, by the sign where it is asked for.
    let short = "cvt.u16.u32 %rs1, %r2; mul.wide.u16 %r6, %rs1, -21845; shr.u32 %r5, %r6, 18;";
    assert_eq!(words(short, 29, 0, 0), 4);
    assert_eq!(words("cvt.u16.u32 %rs1, %r2; cvt.s32.s16 %r5, %rs1;", 0x1_fffe, 0, 0), 0xffff_fffe);
    assert_eq!(
        words("cvt.u16.u32 %rs1, %r2; setp.gt.s16 %p1, %rs1, -3; selp.u32 %r5, 1, 0, %p1;", 0xfffe, 0, 0),
        1
    );
}

#[test]
fn lanes_that_branch_apart_meet_again() {
    // 3 for multiples of three, in a loop that lanes leave at different times, then all lanes count together.
    let body = "mov.u32 %r2, %r1; mov.u32 %r3, 0;\n\
                $L_loop: setp.lt.u32 %p1, %r2, 3; @%p1 bra $L_out; sub.s32 %r2, %r2, 3; add.s32 %r3, %r3, 1; bra.uni $L_loop;\n\
                $L_out: setp.ne.s32 %p2, %r2, 0; @%p2 bra $L_other; mov.u32 %r4, 3; bra.uni $L_end;\n\
                $L_other: mov.u32 %r4, 100;\n\
                $L_end: vote.sync.any.pred %p3, %p2, -1; selp.u32 %r5, 1000, 0, %p3; bar.warp.sync -1;\n\
                add.s32 %r6, %r3, %r4; add.s32 %r6, %r6, %r5; st.global.u32 [%rd2], %r6;";
    let results = result(body, 64);
    for thread in 0..64 {
        assert_eq!(results[thread as usize], 1000 + thread / 3 + if thread % 3 == 0 { 3 } else { 100 });
    }
}

#[test]
fn threads_beyond_the_last_leave_and_the_others_go_on() {
    let body = "setp.ge.u32 %p1, %r1, 40; @%p1 bra $L_end; st.global.u32 [%rd2], %r1;\n$L_end:";
    let results = result(body, 100);
    assert!((0..100).all(|i| results[i] == if i < 40 { i as u32 } else { 1000 + i as u32 }));
}

#[test]
fn shuffles_take_from_the_lane_that_each_names() {
    let body = "mul.lo.s32 %r2, %r1, 10; xor.b32 %r3, %r1, 5; shfl.sync.idx.b32 %r4|%p1, %r2, %r3, 31, -1;\n\
                st.global.u32 [%rd2], %r4;";
    let results = result(body, 64);
    assert!((0..64).all(|thread| results[thread] == (thread as u32 ^ 5) * 10));
}

#[test]
fn lanes_missing_at_a_shuffle_vote_or_barrier() {
    let apart = "setp.lt.u32 %p1, %r1, 7; @%p1 bra $L_end;";
    for what in [
        "bar.warp.sync -1;",
        "vote.sync.any.pred %p2, %p1, -1;",
        "shfl.sync.idx.b32 %r4|%p2, %r1, %r1, 31, -1;",
    ] {
        let found = wrong("", &format!("{apart} {what} $L_end:"), 32);
        assert_eq!(found, Wrong::Apart { named: u32::MAX, present: u32::MAX << 7 }, "{what}");
    }
    let source =
        "setp.lt.u32 %p1, %r1, 7; @!%p1 bra $L_end; shfl.sync.idx.b32 %r4|%p2, %r1, 9, 31, 127;\n$L_end:";
    assert_eq!(wrong("", source, 32), Wrong::Source { lane: 0, source_lane: 9 });
}

const SHARED: &str = ".shared .align 16 .b8 slots[512];";

/// Writes the thread's word of shared memory, then reads its neighbour's in the warp.
fn neighbours(between: &str) -> String {
    format!(
        "mov.u32 %r2, slots; shl.b32 %r3, %r1, 2; add.s32 %r3, %r2, %r3; st.shared.u32 [%r3], %r1; {between}\n\
         xor.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 2; add.s32 %r4, %r2, %r4; ld.shared.u32 %r5, [%r4];\n\
         st.global.u32 [%rd2], %r5;"
    )
}

#[test]
fn a_barrier_orders_shared_memory_and_a_shuffle_does_not() {
    for order in ORDERS {
        let output = run(&text(SHARED, &neighbours("bar.warp.sync -1;")), 1, 64, order).expect("ordered");
        assert!((0..64).all(|thread| output.0[thread] == thread as u32 ^ 1));
    }
    let race = |between: &str| match wrong(SHARED, &neighbours(between), 64) {
        Wrong::Race { thread: 0, does: "reads", space: "shared", other, did: "wrote", .. } => other,
        other => panic!("{other}"),
    };
    assert_eq!(race(""), "1");
    assert_eq!(race("shfl.sync.idx.b32 %r9|%p1, %r1, %r1, 31, -1;"), "1");
}

#[test]
fn shared_memory_of_other_warps_is_never_ordered_and_starts_unwritten() {
    let across = neighbours("bar.warp.sync -1;").replace("xor.b32 %r4, %r1, 1", "xor.b32 %r4, %r1, 32");
    // The first warp reads before the second has written.
    assert!(matches!(wrong(SHARED, &across, 64), Wrong::Unwritten { lane: 0, .. }));
    let all = neighbours("bar.warp.sync -1;").replace("xor.b32 %r4, %r1, 1", "and.b32 %r4, %r1, 31");
    assert!(matches!(wrong(SHARED, &all, 64), Wrong::Race { thread: 32, .. }));
}

#[test]
fn races_in_global_memory() {
    // All threads write one word.
    let same = wrong("", "st.global.u32 [%rd1], %r1;", 32);
    assert!(
        matches!(same, Wrong::Race { thread: 1, does: "writes", space: "global", did: "wrote", .. }),
        "{same}"
    );
    // Written by one warp and read by another, in either order.
    let body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra $L_write; ld.global.u32 %r2, [%rd1]; bra.uni $L_end;\n\
                $L_write: setp.ne.s32 %p2, %r1, 0; @%p2 bra $L_end; st.global.u32 [%rd1], %r1;\n$L_end:";
    for order in ORDERS {
        let found = run(&text("", body), 1, 64, order).map(|_| ());
        assert!(matches!(found, Err(Fault::Execution { what: Wrong::Race { .. }, .. })), "{found:?}");
    }
    // Bytes of one word belong to different threads.
    let bytes = "cvt.u64.u32 %rd3, %r1; add.s64 %rd4, %rd1, %rd3; st.global.u8 [%rd4], %r1;";
    assert_eq!(result(bytes, 32)[7], u32::from_le_bytes([28, 29, 30, 31]));
    // Memory that is read as never written is.
    let read_only = "st.global.u32 [%rd2], %r1; ld.global.nc.u32 %r2, [%rd2];";
    assert!(matches!(wrong("", read_only, 32), Wrong::Race { thread: 0, .. }));
}

#[test]
fn atomic_additions_race_only_with_others() {
    let results = result("atom.global.add.u32 %r2, [%rd1], 2;", 96);
    assert_eq!(results[0], 1000 + 2 * 96);
    let mixed = "atom.global.add.u32 %r2, [%rd1], 2; ld.global.u32 %r3, [%rd1];";
    assert!(matches!(wrong("", mixed, 32), Wrong::Race { did: "added to", .. }));
}

#[test]
fn addresses_outside_and_not_aligned() {
    for offset in ["1024", "-4", "1048576"] {
        let found = wrong("", &format!("ld.global.u32 %r2, [%rd1+{offset}];"), 1);
        assert!(matches!(found, Wrong::Outside { lane: 0, bytes: 4, space: "global", .. }), "{found}");
    }
    let found = wrong("", "ld.global.v2.u32 {%r2, %r3}, [%rd1+4];", 1);
    assert!(matches!(found, Wrong::Misaligned { lane: 0, bytes: 8, .. }), "{found}");
    let found = wrong(SHARED, "mov.u32 %r2, slots; st.shared.u32 [%r2+512], %r1;", 1);
    assert!(matches!(found, Wrong::Outside { space: "shared", .. }), "{found}");
}

#[test]
fn division_by_zero_is_refused() {
    assert_eq!(wrong("", "sub.s32 %r2, %r1, 3; div.u32 %r3, %r1, %r2;", 32), Wrong::Division { lane: 3 });
}

/// A function that doubles a word through memory of its own and returns it with its address' word.
const CALLED: &str = ".func (.param .align 4 .b8 func_retval0[8]) twice(.param .b64 twice_param_0, .param .b32 twice_param_1) {\n\
    .local .align 8 .b8 __local_depot0[8]; .reg .b64 %SP; .reg .b64 %SPL; .reg .b32 %r<5>; .reg .b64 %rd<3>;\n\
    mov.u64 %SPL, __local_depot0; cvta.local.u64 %SP, %SPL;\n\
    ld.param.u64 %rd1, [twice_param_0]; ld.param.u32 %r1, [twice_param_1]; ld.u32 %r2, [%rd1+4];\n\
    add.s32 %r3, %r1, %r1; add.u64 %rd2, %SPL, 0; st.local.u32 [%rd2+4], %r3; ld.u32 %r4, [%SP+4];\n\
    st.param.b32 [func_retval0+0], %r4; st.param.b32 [func_retval0+4], %r2; ret;\n}";

#[test]
fn calls_pass_parameters_and_pointers_into_the_callers_memory() {
    let body = "setp.gt.u32 %p1, %r1, 9; @%p1 bra $L_end;\n\
                { .reg .b64 %SP2; .local .align 8 .b8 depot[16]; mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3;\n\
                add.s32 %r2, %r1, 500; st.local.u32 [%rd3+4], %r2;\n\
                { .param .b64 param0; st.param.b64 [param0+0], %rd4; .param .b32 param1; st.param.b32 [param1+0], %r1;\n\
                .param .align 4 .b8 retval0[8]; call.uni (retval0), twice, (param0, param1);\n\
                ld.param.b32 %r3, [retval0+0]; ld.param.b32 %r4, [retval0+4]; } }\n\
                add.s32 %r5, %r3, %r4; st.global.u32 [%rd2], %r5;\n$L_end:";
    for order in ORDERS {
        let output = run(&text(CALLED, body), 1, 64, order).expect("a sound kernel");
        assert!((0..64).all(|i| output.0[i as usize] == if i < 10 { 3 * i + 500 } else { 1000 + i }));
    }
}

#[test]
fn variables_of_the_module_hold_their_values() {
    let variable = ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 255, 0, 0, 128};";
    let body = "mov.u64 %rd3, table; and.b64 %rd4, %rd0, 4; add.s64 %rd5, %rd3, %rd4; ld.global.nc.u32 %r2, [%rd5];\n\
                st.global.u32 [%rd2], %r2;";
    let output = run(&text(variable, body), 1, 2, Order::Forward).expect("a sound kernel");
    assert_eq!(output.0[..2], [0x0403_0201, 0x8000_00ff]);
}

#[test]
fn what_is_not_known_is_refused() {
    for unknown in [
        "sin.approx.f32 %r2, %r1;",
        "bar.sync 0;",
        "ld.volatile.global.u32 %r2, [%rd1];",
        "popc.b32 %r2, %r1;",
    ] {
        assert!(matches!(fault(unknown), Fault::Unknown { .. }), "{unknown}: {}", fault(unknown));
    }
    assert!(matches!(fault("bra $L_nowhere;"), Fault::Text { .. }));
    assert!(matches!(fault("add.s32 %r2, %r1, %q9;"), Fault::Text { .. }));
    let module = Module::new(&text("", "")).expect("sound");
    assert_eq!(module.kernels().collect::<Vec<_>>(), ["kernel"]);
    assert_eq!(module.check(), Ok(()));
    assert_eq!(module.parameter_bytes("kernel"), Some(vec![8]));
}
