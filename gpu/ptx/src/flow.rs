//! The ways through a function: where they meet again, and what holds on all of them.

use crate::code::{Base, Binary, Function, Operation, Register};
use crate::fault::Fault;

/// What an instruction reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Word(u32),
    Long(u32),
    Predicate(u32),
}

fn of(register: Register) -> Use {
    match register {
        Register::Short(place) | Register::Word(place) => Use::Word(place),
        Register::Long(place) => Use::Long(place),
    }
}

/// What an operation reads, then what it writes. Arguments of calls are left out: they may have gaps.
fn uses(operation: &Operation, reads: &mut Vec<Use>, writes: &mut Vec<Use>) {
    use Operation as O;
    use Use::{Long as L, Predicate as P, Word as W};
    match operation {
        O::Carry(_, d, a, b, c) | O::MadLo(d, a, b, c) => {
            reads.extend([W(*a), W(*b), W(*c)]);
            writes.push(W(*d));
        }
        O::BinaryWord(_, _, d, a, b) | O::MulWideShort(_, d, a, b) => {
            reads.extend([W(*a), W(*b)]);
            writes.push(W(*d));
        }
        O::BinaryLong(_, d, a, b) => {
            reads.extend([L(*a), L(*b)]);
            writes.push(L(*d));
        }
        O::ShiftLong(_, d, a, b) => {
            reads.extend([L(*a), W(*b)]);
            writes.push(L(*d));
        }
        O::UnaryWord(_, _, d, a) | O::MoveWord(d, a) => {
            reads.push(W(*a));
            writes.push(W(*d));
        }
        O::MulWide(_, d, a, b) | O::Pack(d, a, b) => {
            reads.extend([W(*a), W(*b)]);
            writes.push(L(*d));
        }
        O::CompareWord(_, _, d, a, b) => {
            reads.extend([W(*a), W(*b)]);
            writes.push(P(*d));
        }
        O::CompareLong(_, _, d, a, b) => {
            reads.extend([L(*a), L(*b)]);
            writes.push(P(*d));
        }
        O::SelectWord(d, a, b, p) => {
            reads.extend([W(*a), W(*b), P(*p)]);
            writes.push(W(*d));
        }
        O::SelectLong(d, a, b, p) => {
            reads.extend([L(*a), L(*b), P(*p)]);
            writes.push(L(*d));
        }
        // How predicates that never hold are made.
        O::BinaryPredicate(Binary::Xor, d, a, b) if a == b => writes.push(P(*d)),
        O::BinaryPredicate(_, d, a, b) => {
            reads.extend([P(*a), P(*b)]);
            writes.push(P(*d));
        }
        O::MovePredicate(d, a) | O::NotPredicate(d, a) => {
            reads.push(P(*a));
            writes.push(P(*d));
        }
        O::MoveLong(d, a) => {
            reads.push(L(*a));
            writes.push(L(*d));
        }
        O::MoveSpecial(d, _) => writes.push(W(*d)),
        O::MoveLocal(d, _) => writes.push(L(*d)),
        O::Unpack(low, high, a) => {
            reads.push(L(*a));
            writes.extend([W(*low), W(*high)]);
        }
        O::Convert(_, _, d, a) => {
            reads.push(of(*a));
            writes.push(of(*d));
        }
        O::InsertBits(d, a, b, c, e) => {
            reads.extend([W(*a), W(*b), W(*c), W(*e)]);
            writes.push(W(*d));
        }
        O::Extract(d, a, ..) => {
            reads.push(W(*a));
            writes.push(of(*d));
        }
        O::Load(access) | O::Store(access) => {
            reads.push(match access.base {
                Base::Word(place) => W(place),
                Base::Long(place) => L(place),
            });
            let values = access.values.iter().map(|register| of(*register));
            if matches!(operation, O::Load(_)) { writes.extend(values) } else { reads.extend(values) }
        }
        O::AtomicAdd(d, base, _, value) => {
            reads.extend([L(*base), W(*value)]);
            writes.push(W(*d));
        }
        O::Call(call) => {
            writes
                .extend(call.result.iter().flat_map(|block| block.first..block.first + block.words()).map(W));
        }
        O::WarpBarrier(named) => reads.push(W(*named)),
        O::Shuffle(d, in_range, a, b, c, e) => {
            reads.extend([W(*a), W(*b), W(*c), W(*e)]);
            writes.push(W(*d));
            writes.extend(in_range.map(P));
        }
        O::Any(d, a, named) => {
            reads.extend([P(*a), W(*named)]);
            writes.push(P(*d));
        }
        O::Branch(_) | O::Return => {}
    }
}

/// Runs of instructions that are executed from the first to the last.
struct Runs {
    /// Where each begins, and the end of the last.
    starts: Vec<usize>,
    /// The runs that can follow each; the number of runs is the end of the function.
    next: Vec<Vec<usize>>,
}

impl Runs {
    fn of(function: &Function) -> Self {
        let code = &function.code;
        let mut first = vec![false; code.len() + 1];
        first[0] = true;
        for (place, instruction) in code.iter().enumerate() {
            match instruction.operation {
                Operation::Branch(target) => {
                    first[target as usize] = true;
                    first[place + 1] = true;
                }
                Operation::Return => first[place + 1] = true,
                _ => {}
            }
        }
        let mut starts: Vec<usize> = (0..code.len()).filter(|place| first[*place]).collect();
        let count = starts.len();
        starts.push(code.len());
        let run_at = |place: usize| starts.partition_point(|start| *start <= place) - 1;
        let next = (0..count)
            .map(|run| {
                let last = starts[run + 1] - 1;
                let on = |place: usize| if place >= code.len() { count } else { run_at(place) };
                let mut ways = match code[last].operation {
                    Operation::Branch(target) => vec![on(target as usize)],
                    Operation::Return => vec![count],
                    _ => return vec![on(last + 1)],
                };
                if code[last].guard.is_some() {
                    ways.push(on(last + 1));
                }
                ways
            })
            .collect();
        Self { starts, next }
    }

    fn count(&self) -> usize {
        self.next.len()
    }
}

/// For each branch the first instruction that all ways from it come to: its immediate post-dominator.
pub(crate) fn joins(function: &Function) -> Vec<u32> {
    let runs = Runs::of(function);
    let end = runs.count();
    let mut before = vec![vec![]; end + 1];
    for (run, ways) in runs.next.iter().enumerate() {
        ways.iter().for_each(|way| before[*way].push(run));
    }
    // From the end backwards, in reverse postorder (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm).
    let (mut order, mut seen) = (vec![], vec![false; end + 1]);
    let mut pending = vec![(end, 0)];
    seen[end] = true;
    while let Some((run, child)) = pending.pop() {
        if let Some(earlier) = before[run].get(child) {
            pending.push((run, child + 1));
            if !seen[*earlier] {
                seen[*earlier] = true;
                pending.push((*earlier, 0));
            }
        } else {
            order.push(run);
        }
    }
    let mut number = vec![0; end + 1];
    order.iter().enumerate().for_each(|(place, run)| number[*run] = place);
    let mut dominator = vec![usize::MAX; end + 1];
    dominator[end] = end;
    loop {
        let mut changed = false;
        for run in order.iter().rev().filter(|run| **run != end) {
            let mut known = runs.next[*run].iter().copied().filter(|way| dominator[*way] != usize::MAX);
            let Some(first) = known.next() else { continue };
            let joined = known.fold(first, |mut a, mut b| {
                while a != b {
                    while number[a] < number[b] {
                        a = dominator[a];
                    }
                    while number[b] < number[a] {
                        b = dominator[b];
                    }
                }
                a
            });
            changed |= dominator[*run] != joined;
            dominator[*run] = joined;
        }
        if !changed {
            break;
        }
    }
    let mut result = vec![function.code.len() as u32; function.code.len()];
    for run in 0..end {
        if let Some(start) = runs.starts.get(dominator[run]) {
            result[runs.starts[run + 1] - 1] = *start as u32;
        }
    }
    result
}

/// Every flag that is read was written before in the same run, without a call between, by an operation of the same kind.
pub(crate) fn check_flags(function: &Function) -> Result<(), Fault> {
    let runs = Runs::of(function);
    for bounds in runs.starts.windows(2) {
        let mut flag = None;
        for instruction in &function.code[bounds[0]..bounds[1]] {
            match &instruction.operation {
                Operation::Call(_) => flag = None,
                Operation::Carry(carry, ..) => {
                    let wrong = match flag {
                        None if carry.reads() => Some("nothing before it has written"),
                        Some(subtracted) if carry.reads() && subtracted != carry.subtracts() => {
                            Some("is a borrow where it reads a carry, or the reverse")
                        }
                        _ => None,
                    };
                    if let Some(what) = wrong {
                        return Err(Fault::Flag {
                            function: function.name.clone(),
                            line: instruction.line,
                            what,
                        });
                    }
                    if carry.writes() {
                        flag = Some(carry.subtracts());
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Registers that are read on some way on which nothing has written them. nvcc leaves such ways where it cannot see that
/// they are never taken.
pub(crate) fn unwritten(function: &Function, declared: &[Register]) -> Vec<Register> {
    let runs = Runs::of(function);
    let (words, longs) = (function.words as usize, function.longs as usize);
    let total = words + longs + function.predicates as usize;
    let place = |used: Use| match used {
        Use::Word(place) => place as usize,
        Use::Long(place) => words + place as usize,
        Use::Predicate(place) => words + longs + place as usize,
    };
    // Registers that are read before they are written, from the start of each run on.
    let mut wanted = vec![vec![0u64; total.div_ceil(64)]; runs.count() + 1];
    let (mut reads, mut writes) = (vec![], vec![]);
    loop {
        let mut changed = false;
        for run in (0..runs.count()).rev() {
            let mut live = vec![0u64; total.div_ceil(64)];
            for way in &runs.next[run] {
                live.iter_mut().zip(&wanted[*way]).for_each(|(a, b)| *a |= b);
            }
            for instruction in function.code[runs.starts[run]..runs.starts[run + 1]].iter().rev() {
                reads.clear();
                writes.clear();
                uses(&instruction.operation, &mut reads, &mut writes);
                if let Some(guard) = instruction.guard {
                    reads.push(Use::Predicate(guard.predicate));
                } else {
                    writes.iter().for_each(|used| live[place(*used) / 64] &= !(1 << (place(*used) % 64)));
                }
                reads.iter().for_each(|used| live[place(*used) / 64] |= 1 << (place(*used) % 64));
            }
            changed |= live != wanted[run];
            wanted[run] = live;
        }
        if !changed {
            break;
        }
    }
    let is_wanted = |used: Use| wanted[0][place(used) / 64] >> (place(used) % 64) & 1 == 1;
    declared.iter().copied().filter(|register| is_wanted(of(*register))).collect()
}
