//! What single instructions do, in all lanes at once.

use super::{Frame, Stop};
use crate::code::{Base, Binary, Carry, Comparison, Operation, Register, Space, Special, Unary};
use crate::fault::Wrong;
use crate::grid::Machine;
use crate::lanes::{ALL, LANES, Longs, Mask, Words, lanes_of};
use crate::shadow::Way;

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
    #[inline(always)]
    pub(super) fn step(
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

    pub(super) fn special(&self, which: Special) -> Words {
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
}

/// What a lane named in a synchronising instruction must find: exactly the named lanes, here.
fn together(named: &Words, lanes: Mask) -> Result<(), Wrong> {
    match lanes_of(lanes, false).map(|lane| named.0[lane]).find(|named| *named != lanes) {
        Some(named) => Err(Wrong::Apart { named, present: lanes }),
        None => Ok(()),
    }
}
