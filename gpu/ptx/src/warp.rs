//! One warp: its lanes execute a function together, apart where they branch, and together again where the ways meet.

use std::sync::Arc;

use crate::code::{
    Access, Base, Binary, Call, Carry, Comparison, Function, Operation, Register, Space, Special, Unary,
};
use crate::decode::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::fault::{Fault, Wrong};
use crate::grid::Machine;
use crate::lanes::{ALL, LANES, Longs, Mask, Words, lanes_of};
use crate::memory::POISON;
use crate::shadow::{Way, Who};

/// The registers of one execution of a function.
pub(crate) struct Frame {
    pub(crate) words: Vec<Words>,
    longs: Vec<Longs>,
    predicates: Vec<Mask>,
}

impl Frame {
    pub(crate) fn new(function: &Function) -> Self {
        let mut frame = Self {
            words: vec![Words::of(0); function.words as usize],
            longs: vec![Longs::of(0); function.longs as usize],
            predicates: vec![0; function.predicates as usize],
        };
        for (place, value) in &function.word_constants {
            frame.words[*place as usize] = Words::of(*value);
        }
        for (place, value) in &function.long_constants {
            frame.longs[*place as usize] = Longs::of(*value);
        }
        frame
    }

    #[inline(always)]
    fn word(&self, place: u32) -> &Words {
        &self.words[place as usize]
    }

    #[inline(always)]
    fn long(&self, place: u32) -> &Longs {
        &self.longs[place as usize]
    }

    #[inline(always)]
    fn set_word(&mut self, place: u32, values: &Words, lanes: Mask) {
        self.words[place as usize].put(values, lanes);
    }

    #[inline(always)]
    fn set_long(&mut self, place: u32, values: &Longs, lanes: Mask) {
        self.longs[place as usize].put(values, lanes);
    }

    #[inline(always)]
    fn set_predicate(&mut self, place: u32, values: Mask, lanes: Mask) {
        let at = &mut self.predicates[place as usize];
        *at = *at & !lanes | values & lanes;
    }

    fn get(&self, register: Register, lane: usize) -> u64 {
        match register {
            Register::Short(place) | Register::Word(place) => u64::from(self.words[place as usize].0[lane]),
            Register::Long(place) => self.longs[place as usize].0[lane],
        }
    }

    fn set(&mut self, register: Register, lane: usize, value: u64) {
        match register {
            Register::Short(place) => self.words[place as usize].0[lane] = value as u32 & 0xffff,
            Register::Word(place) => self.words[place as usize].0[lane] = value as u32,
            Register::Long(place) => self.longs[place as usize].0[lane] = value,
        }
    }

    fn address(&self, base: Base, lane: usize, offset: i64) -> u64 {
        match base {
            Base::Word(place) => u64::from(self.words[place as usize].0[lane].wrapping_add(offset as u32)),
            Base::Long(place) => self.longs[place as usize].0[lane].wrapping_add_signed(offset),
        }
    }
}

/// Lanes that are on one way: where they are, and where they wait for the others.
struct Path {
    place: u32,
    until: u32,
    lanes: Mask,
}

/// a + b with the flag in or out.
#[inline(always)]
fn add<const READS: bool, const WRITES: bool>(a: &Words, b: &Words, flag: &mut Words, lanes: Mask) -> Words {
    let (mut sum, mut carry) = (Words::of(0), Words::of(0));
    for lane in 0..LANES {
        let first = a.0[lane].wrapping_add(b.0[lane]);
        let second = if READS { first.wrapping_add(flag.0[lane]) } else { first };
        sum.0[lane] = second;
        carry.0[lane] = u32::from(first < a.0[lane]) | u32::from(second < first);
    }
    if WRITES {
        flag.put(&carry, lanes);
    }
    sum
}

/// a − b with the flag in or out.
#[inline(always)]
fn sub<const READS: bool, const WRITES: bool>(a: &Words, b: &Words, flag: &mut Words, lanes: Mask) -> Words {
    let (mut difference, mut borrow) = (Words::of(0), Words::of(0));
    for lane in 0..LANES {
        let first = a.0[lane].wrapping_sub(b.0[lane]);
        let second = if READS { first.wrapping_sub(flag.0[lane]) } else { first };
        difference.0[lane] = second;
        borrow.0[lane] = u32::from(a.0[lane] < b.0[lane]) | u32::from(first < second);
    }
    if WRITES {
        flag.put(&borrow, lanes);
    }
    difference
}

#[inline(always)]
fn low(a: &Words, b: &Words) -> Words {
    a.zip(b, u32::wrapping_mul)
}

#[inline(always)]
fn high(a: &Words, b: &Words) -> Words {
    a.zip(b, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
}

/// Of 32 bits, or of 16 cut off.
#[inline(always)]
fn binary(which: Binary, a: &Words, b: &Words) -> Words {
    match which {
        Binary::Add => a.zip(b, u32::wrapping_add),
        Binary::Sub => a.zip(b, u32::wrapping_sub),
        Binary::MulLo => low(a, b),
        Binary::MulHi => high(a, b),
        Binary::MulHiSigned => a.zip(b, |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
        Binary::And => a.zip(b, |a, b| a & b),
        Binary::Or => a.zip(b, |a, b| a | b),
        Binary::Xor => a.zip(b, |a, b| a ^ b),
        Binary::ShiftLeft => a.zip(b, |a, b| if b < 32 { a << b } else { 0 }),
        Binary::ShiftRight => a.zip(b, |a, b| if b < 32 { a >> b } else { 0 }),
        Binary::ShiftRightSigned => a.zip(b, |a, b| ((a as i32) >> b.min(31)) as u32),
        Binary::Min => a.zip(b, u32::min),
        Binary::Max => a.zip(b, u32::max),
        Binary::MinSigned => a.zip(b, |a, b| (a as i32).min(b as i32) as u32),
        Binary::MaxSigned => a.zip(b, |a, b| (a as i32).max(b as i32) as u32),
        // Lanes that divide by zero were looked for before.
        Binary::Div => a.zip(b, |a, b| a.checked_div(b).unwrap_or(0)),
        Binary::Rem => a.zip(b, |a, b| a.checked_rem(b).unwrap_or(0)),
    }
}

#[inline(always)]
fn binary_long(which: Binary, a: &Longs, b: &Longs) -> Longs {
    match which {
        Binary::Add => a.zip(b, u64::wrapping_add),
        Binary::Sub => a.zip(b, u64::wrapping_sub),
        Binary::MulLo => a.zip(b, u64::wrapping_mul),
        Binary::And => a.zip(b, |a, b| a & b),
        Binary::Or => a.zip(b, |a, b| a | b),
        Binary::Xor => a.zip(b, |a, b| a ^ b),
        Binary::Min => a.zip(b, u64::min),
        Binary::Max => a.zip(b, u64::max),
        Binary::MinSigned => a.zip(b, |a, b| (a as i64).min(b as i64) as u64),
        Binary::MaxSigned => a.zip(b, |a, b| (a as i64).max(b as i64) as u64),
        other => unreachable!("{other:?} is not decoded for 64 bits"),
    }
}

#[inline(always)]
fn compare<T: Ord>(which: Comparison, a: T, b: T) -> bool {
    match which {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less => a < b,
        Comparison::LessOrEqual => a <= b,
        Comparison::Greater => a > b,
        Comparison::GreaterOrEqual => a >= b,
    }
}

impl Machine<'_> {
    /// Executes a function in some lanes of the warp.
    pub(crate) fn execute(
        &mut self,
        function: &Function,
        frame: &mut Frame,
        lanes: Mask,
    ) -> Result<(), Fault> {
        let before = self.local.enter(function.local_bytes).map_err(|what| Fault::Execution {
            function: function.name.clone(),
            line: function.code.first().map_or(0, |instruction| instruction.line),
            what,
        })?;
        let local_base = self.local.base(function.local_bytes);
        for register in &function.unwritten {
            lanes_of(lanes, false)
                .for_each(|lane| frame.set(*register, lane, u64::from_ne_bytes([POISON; 8])));
        }
        self.walk(function, frame, lanes, local_base)?;
        self.local.leave(before);
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    fn walk(&mut self, f: &Function, frame: &mut Frame, lanes: Mask, local_base: u64) -> Result<(), Fault> {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has what the function needs.
            unsafe { self.walk_avx512(f, frame, lanes, local_base) }
        } else if is_x86_feature_detected!("avx2") {
            // SAFETY: likewise.
            unsafe { self.walk_avx2(f, frame, lanes, local_base) }
        } else {
            self.steps(f, frame, lanes, local_base)
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn walk(&mut self, f: &Function, frame: &mut Frame, lanes: Mask, local_base: u64) -> Result<(), Fault> {
        self.steps(f, frame, lanes, local_base)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    fn walk_avx512(
        &mut self,
        f: &Function,
        frame: &mut Frame,
        lanes: Mask,
        local_base: u64,
    ) -> Result<(), Fault> {
        self.steps(f, frame, lanes, local_base)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn walk_avx2(
        &mut self,
        f: &Function,
        frame: &mut Frame,
        lanes: Mask,
        local_base: u64,
    ) -> Result<(), Fault> {
        self.steps(f, frame, lanes, local_base)
    }

    /// Lanes that branch apart go on one after the other, each up to the place where all ways meet.
    #[inline(always)]
    fn steps(
        &mut self,
        function: &Function,
        frame: &mut Frame,
        lanes: Mask,
        local_base: u64,
    ) -> Result<(), Fault> {
        let end = function.code.len() as u32;
        let mut paths = vec![Path { place: 0, until: end, lanes }];
        while let Some(path) = paths.last() {
            let Path { mut place, until, mut lanes } = *path;
            let apart = loop {
                if place == until || lanes == 0 {
                    break None;
                }
                let instruction = &function.code[place as usize];
                let active = match instruction.guard {
                    None => lanes,
                    Some(guard) => {
                        let holds = frame.predicates[guard.predicate as usize];
                        lanes & if guard.negated { !holds } else { holds }
                    }
                };
                match instruction.operation {
                    Operation::Branch(target) if active == lanes => place = target,
                    Operation::Branch(_) if active == 0 => place += 1,
                    Operation::Branch(target) => {
                        break Some((
                            function.joins[place as usize],
                            [(place + 1, lanes & !active), (target, active)],
                        ));
                    }
                    Operation::Return => {
                        paths.iter_mut().for_each(|path| path.lanes &= !active);
                        lanes &= !active;
                        place += 1;
                    }
                    _ => {
                        if active != 0 {
                            self.step(&instruction.operation, frame, active, local_base).map_err(|stop| {
                                match stop {
                                    Stop::Inner(fault) => fault,
                                    Stop::Wrong(what) => Fault::Execution {
                                        function: function.name.clone(),
                                        line: instruction.line,
                                        what,
                                    },
                                }
                            })?;
                        }
                        place += 1;
                    }
                }
            };
            match apart {
                None => {
                    paths.pop();
                }
                Some((join, mut ways)) => {
                    if self.turn() {
                        ways.swap(0, 1);
                    }
                    // This path goes on where the two meet.
                    if let Some(path) = paths.last_mut() {
                        path.place = join;
                    }
                    paths.extend(ways.map(|(place, lanes)| Path { place, until: join, lanes }));
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn step(
        &mut self,
        operation: &Operation,
        frame: &mut Frame,
        lanes: Mask,
        local_base: u64,
    ) -> Result<(), Stop> {
        use Operation as O;
        match operation {
            O::Carry(carry, d, a, b, c) => {
                let (a, b, c, flag) = (frame.word(*a), frame.word(*b), frame.word(*c), &mut self.flag);
                let result = match carry {
                    Carry::AddCc => add::<false, true>(a, b, flag, lanes),
                    Carry::AddcCc => add::<true, true>(a, b, flag, lanes),
                    Carry::Addc => add::<true, false>(a, b, flag, lanes),
                    Carry::SubCc => sub::<false, true>(a, b, flag, lanes),
                    Carry::SubcCc => sub::<true, true>(a, b, flag, lanes),
                    Carry::Subc => sub::<true, false>(a, b, flag, lanes),
                    Carry::MadLoCc => add::<false, true>(&low(a, b), c, flag, lanes),
                    Carry::MadcLoCc => add::<true, true>(&low(a, b), c, flag, lanes),
                    Carry::MadcLo => add::<true, false>(&low(a, b), c, flag, lanes),
                    Carry::MadHiCc => add::<false, true>(&high(a, b), c, flag, lanes),
                    Carry::MadcHiCc => add::<true, true>(&high(a, b), c, flag, lanes),
                    Carry::MadcHi => add::<true, false>(&high(a, b), c, flag, lanes),
                };
                frame.set_word(*d, &result, lanes);
            }
            O::MadLo(d, a, b, c) => {
                let result = low(frame.word(*a), frame.word(*b)).zip(frame.word(*c), u32::wrapping_add);
                frame.set_word(*d, &result, lanes);
            }
            O::BinaryWord(which, short, d, a, b) => {
                let (a, b) = (frame.word(*a), frame.word(*b));
                if matches!(which, Binary::Div | Binary::Rem) {
                    let zero = lanes & b.compare(&Words::of(0), |b, zero| b == zero);
                    if zero != 0 {
                        return Err(Wrong::Division { lane: zero.trailing_zeros() as usize }.into());
                    }
                }
                let mut result = binary(*which, a, b);
                if *short {
                    result = result.map(|value| value & 0xffff);
                }
                frame.set_word(*d, &result, lanes);
            }
            O::BinaryLong(which, d, a, b) => {
                let result = binary_long(*which, frame.long(*a), frame.long(*b));
                frame.set_long(*d, &result, lanes);
            }
            O::ShiftLong(which, d, a, b) => {
                let (a, b) = (frame.long(*a), frame.word(*b));
                let result = match which {
                    Binary::ShiftLeft => a.shift(b, |a, b| if b < 64 { a << b } else { 0 }),
                    Binary::ShiftRight => a.shift(b, |a, b| if b < 64 { a >> b } else { 0 }),
                    _ => a.shift(b, |a, b| ((a as i64) >> b.min(63)) as u64),
                };
                frame.set_long(*d, &result, lanes);
            }
            O::UnaryWord(which, short, d, a) => {
                let mut result = frame.word(*a).map(|a| match which {
                    Unary::Not => !a,
                    Unary::Negate => a.wrapping_neg(),
                    Unary::Absolute => (a as i32).wrapping_abs() as u32,
                });
                if *short {
                    result = result.map(|value| value & 0xffff);
                }
                frame.set_word(*d, &result, lanes);
            }
            O::MulWide(signed, d, a, b) => {
                let (a, b, mut result) = (frame.word(*a), frame.word(*b), Longs::of(0));
                for lane in 0..LANES {
                    let (a, b) = (a.0[lane], b.0[lane]);
                    result.0[lane] = if *signed {
                        (i64::from(a as i32) * i64::from(b as i32)) as u64
                    } else {
                        u64::from(a) * u64::from(b)
                    };
                }
                frame.set_long(*d, &result, lanes);
            }
            O::MulWideShort(signed, d, a, b) => {
                let (a, b) = (frame.word(*a), frame.word(*b));
                let result = if *signed {
                    a.zip(b, |a, b| (i32::from(a as i16) * i32::from(b as i16)) as u32)
                } else {
                    a.zip(b, |a, b| a * b)
                };
                frame.set_word(*d, &result, lanes);
            }
            O::CompareWord(which, of, d, a, b) => {
                let (a, b) = (frame.word(*a), frame.word(*b));
                let result = if of.signed {
                    a.compare(b, |a, b| {
                        compare(*which, of.extend(a.into()) as i64, of.extend(b.into()) as i64)
                    })
                } else {
                    a.compare(b, |a, b| compare(*which, a, b))
                };
                frame.set_predicate(*d, result, lanes);
            }
            O::CompareLong(which, signed, d, a, b) => {
                let (a, b) = (frame.long(*a), frame.long(*b));
                let result = if *signed {
                    a.compare(b, |a, b| compare(*which, a as i64, b as i64))
                } else {
                    a.compare(b, |a, b| compare(*which, a, b))
                };
                frame.set_predicate(*d, result, lanes);
            }
            O::SelectWord(d, a, b, p) => {
                let mut result = *frame.word(*b);
                result.put(frame.word(*a), frame.predicates[*p as usize]);
                frame.set_word(*d, &result, lanes);
            }
            O::SelectLong(d, a, b, p) => {
                let mut result = *frame.long(*b);
                result.put(frame.long(*a), frame.predicates[*p as usize]);
                frame.set_long(*d, &result, lanes);
            }
            O::MovePredicate(d, a) => frame.set_predicate(*d, frame.predicates[*a as usize], lanes),
            O::NotPredicate(d, a) => frame.set_predicate(*d, !frame.predicates[*a as usize], lanes),
            O::BinaryPredicate(which, d, a, b) => {
                let (a, b) = (frame.predicates[*a as usize], frame.predicates[*b as usize]);
                let result = match which {
                    Binary::And => a & b,
                    Binary::Or => a | b,
                    _ => a ^ b,
                };
                frame.set_predicate(*d, result, lanes);
            }
            O::MoveWord(d, a) => {
                let value = *frame.word(*a);
                frame.set_word(*d, &value, lanes);
            }
            O::MoveLong(d, a) => {
                let value = *frame.long(*a);
                frame.set_long(*d, &value, lanes);
            }
            O::MoveLocal(d, offset) => frame.set_long(*d, &Longs::of(local_base + u64::from(*offset)), lanes),
            O::MoveSpecial(d, which) => {
                let value = self.special(*which);
                frame.set_word(*d, &value, lanes);
            }
            O::Pack(d, a, b) => {
                let (a, b, mut result) = (frame.word(*a), frame.word(*b), Longs::of(0));
                for lane in 0..LANES {
                    result.0[lane] = u64::from(a.0[lane]) | u64::from(b.0[lane]) << 32;
                }
                frame.set_long(*d, &result, lanes);
            }
            O::Unpack(low, high, a) => {
                let (a, mut parts) = (*frame.long(*a), [Words::of(0); 2]);
                for lane in 0..LANES {
                    parts[0].0[lane] = a.0[lane] as u32;
                    parts[1].0[lane] = (a.0[lane] >> 32) as u32;
                }
                frame.set_word(*low, &parts[0], lanes);
                frame.set_word(*high, &parts[1], lanes);
            }
            O::Convert(from, to, d, a) => {
                for lane in lanes_of(lanes, false) {
                    // As the source is signed, cut to the destination's type, and as that is signed in its register.
                    frame.set(*d, lane, to.extend(from.extend(frame.get(*a, lane))));
                }
            }
            O::InsertBits(d, field, into, position, length) => {
                for lane in lanes_of(lanes, false) {
                    let [field, into, position, length] =
                        [field, into, position, length].map(|place| u64::from(frame.word(*place).0[lane]));
                    let (position, length) = (position & 0xff, length & 0xff);
                    let ones = if length < 64 { (1u64 << length) - 1 } else { !0 };
                    let mask = ones.checked_shl(position as u32).unwrap_or(0);
                    let placed = field.checked_shl(position as u32).unwrap_or(0);
                    frame.set(Register::Word(*d), lane, into & !mask | placed & mask);
                }
            }
            O::Extract(d, a, bit, of) => {
                for lane in lanes_of(lanes, false) {
                    let value = u64::from(frame.word(*a).0[lane] >> bit);
                    frame.set(*d, lane, of.extend(value));
                }
            }
            O::Load(access) => self.load(access, frame, lanes)?,
            O::Store(access) => self.store(access, frame, lanes)?,
            O::AtomicAdd(d, base, offset, value) => {
                for lane in lanes_of(lanes, self.backwards) {
                    let address = frame.address(Base::Long(*base), lane, *offset);
                    let place = self.place(Space::Global, lane, address, 4, Way::Atomic)?;
                    let before = self.get(place, lane, 4)?;
                    let after = (before as u32).wrapping_add(frame.word(*value).0[lane]);
                    self.put(place, lane, 4, u64::from(after))?;
                    frame.set(Register::Word(*d), lane, before);
                }
            }
            O::Call(call) => self.call(call, frame, lanes)?,
            O::WarpBarrier(named) => {
                together(frame.word(*named), lanes)?;
                self.time += 1;
            }
            O::Shuffle(d, in_range, value, source, clamp, named) => {
                together(frame.word(*named), lanes)?;
                let (value, mut result) = (frame.word(*value), Words::of(0));
                let mut valid = 0;
                for lane in lanes_of(lanes, false) {
                    let clamp = frame.word(*clamp).0[lane];
                    let segments = clamp >> 8 & 31;
                    let (first, last) =
                        (lane as u32 & segments, lane as u32 & segments | clamp & 31 & !segments);
                    let wanted = first | frame.word(*source).0[lane] & 31 & !segments;
                    let from = if wanted <= last { wanted } else { lane as u32 };
                    valid |= u32::from(wanted <= last) << lane;
                    if lanes >> from & 1 == 0 {
                        return Err(Wrong::Source { lane, source_lane: from }.into());
                    }
                    result.0[lane] = value.0[from as usize];
                }
                frame.set_word(*d, &result, lanes);
                if let Some(in_range) = in_range {
                    frame.set_predicate(*in_range, valid, lanes);
                }
            }
            O::Any(d, a, named) => {
                together(frame.word(*named), lanes)?;
                let any = if frame.predicates[*a as usize] & lanes != 0 { ALL } else { 0 };
                frame.set_predicate(*d, any, lanes);
            }
            O::Branch(_) | O::Return => {}
        }
        Ok(())
    }

    fn special(&self, which: Special) -> Words {
        match which {
            Special::Block => Words::of(self.block),
            Special::BlockThreads => Words::of(self.block_threads),
            Special::Blocks => Words::of(self.blocks),
            Special::Thread | Special::Lane => {
                let first = if which == Special::Thread { self.warp * LANES as u32 } else { 0 };
                let mut lanes = Words::of(first);
                lanes.0.iter_mut().enumerate().for_each(|(lane, value)| *value += lane as u32);
                lanes
            }
        }
    }

    #[inline(never)]
    fn call(&mut self, call: &Call, frame: &mut Frame, lanes: Mask) -> Result<(), Stop> {
        let callee: Arc<Function> = self.function(call.callee)?;
        let mut inner = self.take_frame(call.callee, &callee);
        for (from, to) in call.arguments.iter().zip(&callee.parameters) {
            let (from, to, words) = (from.first as usize, to.first as usize, from.words() as usize);
            inner.words[to..to + words].copy_from_slice(&frame.words[from..from + words]);
        }
        self.execute(&callee, &mut inner, lanes)?;
        if let (Some(to), Some(from)) = (call.result, callee.result) {
            for word in 0..to.words() {
                let value = *inner.word(from.first + word);
                frame.set_word(to.first + word, &value, lanes);
            }
        }
        self.give_frame(call.callee, inner);
        Ok(())
    }

    #[inline(never)]
    fn load(&mut self, access: &Access, frame: &mut Frame, lanes: Mask) -> Result<(), Stop> {
        let (bytes, way) =
            (access.kind.bytes(), if access.space == Space::ReadOnly { Way::ReadOnly } else { Way::Read });
        if let Some(address) = self.same_local_word(access, frame, lanes) {
            for (number, register) in access.values.iter().enumerate() {
                let value = *self.local.word(address + 4 * number as u64)?;
                if let Register::Word(to) = register {
                    frame.set_word(*to, &value, lanes);
                }
            }
            return Ok(());
        }
        for lane in lanes_of(lanes, self.backwards) {
            let address = frame.address(access.base, lane, access.offset);
            let whole = bytes * access.values.len();
            let place = self.place(access.space, lane, address, whole, way)?;
            for (number, register) in access.values.iter().enumerate() {
                let value = self.get(place.after(number * bytes), lane, bytes)?;
                frame.set(*register, lane, access.kind.extend(value));
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn store(&mut self, access: &Access, frame: &mut Frame, lanes: Mask) -> Result<(), Stop> {
        let bytes = access.kind.bytes();
        if let Some(address) = self.same_local_word(access, frame, lanes) {
            for (number, register) in access.values.iter().enumerate() {
                if let Register::Word(from) = register {
                    self.local.word(address + 4 * number as u64)?.put(frame.word(*from), lanes);
                }
            }
            return Ok(());
        }
        for lane in lanes_of(lanes, self.backwards) {
            let address = frame.address(access.base, lane, access.offset);
            let whole = bytes * access.values.len();
            let place = self.place(access.space, lane, address, whole, Way::Write)?;
            for (number, register) in access.values.iter().enumerate() {
                self.put(place.after(number * bytes), lane, bytes, frame.get(*register, lane))?;
            }
        }
        Ok(())
    }

    /// The address in local memory where all lanes have words, if it is the same for all.
    fn same_local_word(&self, access: &Access, frame: &Frame, lanes: Mask) -> Option<u64> {
        let words = access.kind.bits == 32
            && access.values.iter().all(|register| matches!(register, Register::Word(_)));
        let mut all = lanes_of(lanes, false).map(|lane| frame.address(access.base, lane, access.offset));
        let first = all.next().filter(|_| words)?;
        let local = match access.space {
            Space::Local => first,
            Space::Generic => first.wrapping_sub(LOCAL_WINDOW),
            _ => return None,
        };
        let whole = 4 * access.values.len();
        let same =
            local >> 32 == 0 && local.is_multiple_of(whole as u64) && all.all(|address| address == first);
        same.then_some(local)
    }

    /// Where memory is that may be used in this way.
    #[inline(always)]
    fn place(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        bytes: usize,
        way: Way,
    ) -> Result<Place, Wrong> {
        if !address.is_multiple_of(bytes as u64) {
            return Err(Wrong::Misaligned { lane, bytes, address });
        }
        let space = match (space, address >> 56) {
            (Space::Generic, 0x10) => Space::Local,
            (Space::Generic, 0x20) => Space::Shared,
            (Space::Generic, _) => Space::Global,
            (space, _) => space,
        };
        let offset = address & 0x00ff_ffff_ffff_ffff;
        let who = Who { thread: self.first_thread + lane as u32, time: self.time };
        match space {
            Space::Local => Ok(Place::Local(offset)),
            Space::Shared => {
                let offset = if address >> 56 == SHARED_WINDOW >> 56 { offset } else { address };
                if offset + bytes as u64 > self.shared.len() as u64 {
                    return Err(Wrong::Outside { lane, bytes, space: "shared", address });
                }
                self.shared_shadow.used(who, offset, bytes, way, way == Way::Read)?;
                Ok(Place::Shared(offset as usize))
            }
            _ => {
                if !self.may_use(address, bytes as u64) {
                    return Err(Wrong::Outside { lane, bytes, space: "global", address });
                }
                self.global_shadow.used(who, address, bytes, way, false)?;
                Ok(Place::Global(address))
            }
        }
    }

    #[inline(always)]
    fn get(&self, place: Place, lane: usize, bytes: usize) -> Result<u64, Wrong> {
        match place {
            Place::Local(address) => self.local.read(lane, address, bytes),
            Place::Shared(at) => Ok(crate::memory::read(&self.shared[at..at + bytes])),
            Place::Global(address) => {
                // SAFETY: `place` has looked that the launch may use this memory.
                let content = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
                Ok(crate::memory::read(content))
            }
        }
    }

    #[inline(always)]
    fn put(&mut self, place: Place, lane: usize, bytes: usize, value: u64) -> Result<(), Wrong> {
        let source = &value.to_le_bytes()[..bytes];
        match place {
            Place::Local(address) => self.local.write(lane, address, bytes, value)?,
            Place::Shared(at) => self.shared[at..at + bytes].copy_from_slice(source),
            // SAFETY: `place` has looked that the launch may use this memory.
            Place::Global(address) => unsafe {
                std::ptr::copy_nonoverlapping(source.as_ptr(), address as *mut u8, bytes);
            },
        }
        Ok(())
    }
}

/// What a lane named in a synchronising instruction must find: exactly the named lanes, here.
fn together(named: &Words, lanes: Mask) -> Result<(), Wrong> {
    match lanes_of(lanes, false).map(|lane| named.0[lane]).find(|named| *named != lanes) {
        Some(named) => Err(Wrong::Apart { named, present: lanes }),
        None => Ok(()),
    }
}

/// Memory of one of the spaces.
#[derive(Debug, Clone, Copy)]
enum Place {
    Global(u64),
    Shared(usize),
    Local(u64),
}

impl Place {
    fn after(self, bytes: usize) -> Self {
        match self {
            Self::Global(address) => Self::Global(address + bytes as u64),
            Self::Shared(at) => Self::Shared(at + bytes),
            Self::Local(address) => Self::Local(address + bytes as u64),
        }
    }
}

/// Why execution stops: at this instruction, or within the function that it calls.
enum Stop {
    Wrong(Wrong),
    Inner(Fault),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Inner(fault)
    }
}
