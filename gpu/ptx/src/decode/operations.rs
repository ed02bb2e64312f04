//! Instructions that stay within registers.

use super::{Decoder, Operands, kind};
use crate::code::{Base, Binary, Carry, Comparison, Operation, Register, Special, Type, Unary};
use crate::fault::Fault;
use crate::lexer::number;

impl Decoder<'_> {
    /// What an instruction does, in one step or several.
    pub(super) fn operations(
        &mut self,
        name: &str,
        at: Operands<'_, '_, '_>,
    ) -> Result<Vec<Operation>, Fault> {
        let mut parts = name.split('.');
        let stem = parts.next().unwrap_or_default();
        match stem {
            "ret" | "exit" if name == "ret" => return Ok(vec![Operation::Return]),
            "bra" if name == "bra" || name == "bra.uni" => {
                let label = at.next()?.to_owned();
                self.open.push((self.function.code.len(), label, at.line()));
                return Ok(vec![Operation::Branch(0)]);
            }
            "call" if name == "call.uni" => return self.call(at),
            "mov" => return self.mov(name, at),
            "ld" | "st" => return self.access(name, at),
            "cvta" => return self.generic(name, at),
            _ => {}
        }
        if let Some(carry) = carry(name) {
            return self.carry(carry, at);
        }
        let one = match name {
            "bar.warp.sync" => Operation::WarpBarrier(self.word_in(false, at)?),
            "shfl.sync.idx.b32" => self.shuffle(at)?,
            "vote.sync.any.pred" => {
                let to = self.predicate(at)?;
                Self::comma(at)?;
                let from = self.predicate(at)?;
                Self::comma(at)?;
                Operation::Any(to, from, self.word_in(false, at)?)
            }
            "atom.global.add.u32" => {
                let to = self.word_out(at)?;
                Self::comma(at)?;
                let (base, offset) = Self::address(at)?;
                let Base::Long(base) = self.base(base, at)? else {
                    return Err(at.wrong("an address of 32 bits"));
                };
                Self::comma(at)?;
                Operation::AtomicAdd(to, base, offset, self.word_in(false, at)?)
            }
            "bfi.b32" => {
                let to = self.word_out(at)?;
                let [field, into, position, length] = self.words(at)?;
                Operation::InsertBits(to, field, into, position, length)
            }
            "mad.lo.s32" | "mad.lo.u32" => {
                let to = self.word_out(at)?;
                let [a, b, c] = self.words(at)?;
                Operation::MadLo(to, a, b, c)
            }
            "mul.wide.u32" | "mul.wide.s32" => {
                let to = self.long_out(at)?;
                let [a, b] = self.words(at)?;
                Operation::MulWide(name.ends_with("s32"), to, a, b)
            }
            "mul.wide.u16" | "mul.wide.s16" => {
                let to = self.word_out(at)?;
                let [a, b] = self.shorts(at)?;
                Operation::MulWideShort(name.ends_with("s16"), to, a, b)
            }
            _ => self.regular(name, at)?,
        };
        Ok(vec![one])
    }

    /// What is one operation for several types.
    pub(super) fn regular(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Operation, Fault> {
        let (stem, last) = name.rsplit_once('.').unwrap_or((name, ""));
        if last == "pred" {
            return self.logic(stem, name, at);
        }
        let Some(of) = kind(last) else { return Err(at.unknown(name)) };
        if let Some(comparison) = stem.strip_prefix("setp.") {
            return self.compare(comparison, of, name, at);
        }
        if stem == "selp" {
            return self.select(of, at);
        }
        if let Some(to) = stem.strip_prefix("cvt.") {
            let Some(to) = kind(to) else { return Err(at.unknown(name)) };
            let register = self.register(at)?;
            Self::comma(at)?;
            return Ok(Operation::Convert(of, to, register, self.register(at)?));
        }
        if let Some(unary) = unary(stem) {
            if of.bits > 32 {
                return Err(at.unknown(name));
            }
            let to = self.word_out(at)?;
            Self::comma(at)?;
            return Ok(Operation::UnaryWord(unary, of.bits == 16, to, self.word_in(of.bits == 16, at)?));
        }
        let Some(binary) = binary(stem, of) else { return Err(at.unknown(name)) };
        let shift = matches!(binary, Binary::ShiftLeft | Binary::ShiftRight | Binary::ShiftRightSigned);
        if of.bits == 64 {
            let to = self.long_out(at)?;
            Self::comma(at)?;
            let a = self.long_in(at)?;
            Self::comma(at)?;
            return Ok(if shift {
                Operation::ShiftLong(binary, to, a, self.word_in(false, at)?)
            } else {
                Operation::BinaryLong(binary, to, a, self.long_in(at)?)
            });
        }
        let short = of.bits == 16;
        // Of shorts only what is the same for all 32 bits, cut off.
        let cut =
            !matches!(binary, Binary::MulHi | Binary::MulHiSigned | Binary::MinSigned | Binary::MaxSigned);
        if of.bits == 8 || short && (!cut || binary == Binary::ShiftRightSigned) {
            return Err(at.unknown(name));
        }
        let to = self.word_out(at)?;
        Self::comma(at)?;
        let a = self.word_in(short, at)?;
        Self::comma(at)?;
        Ok(Operation::BinaryWord(binary, short, to, a, self.word_in(short && !shift, at)?))
    }

    pub(super) fn words<const N: usize>(&mut self, at: Operands<'_, '_, '_>) -> Result<[u32; N], Fault> {
        let mut all = [0; N];
        for word in &mut all {
            Self::comma(at)?;
            *word = self.word_in(false, at)?;
        }
        Ok(all)
    }

    pub(super) fn shorts<const N: usize>(&mut self, at: Operands<'_, '_, '_>) -> Result<[u32; N], Fault> {
        let mut all = [0; N];
        for word in &mut all {
            Self::comma(at)?;
            *word = self.word_in(true, at)?;
        }
        Ok(all)
    }

    pub(super) fn carry(&mut self, carry: Carry, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
        let to = self.word_out(at)?;
        let product = !matches!(
            carry,
            Carry::AddCc | Carry::AddcCc | Carry::Addc | Carry::SubCc | Carry::SubcCc | Carry::Subc
        );
        let [a, b] = self.words(at)?;
        let c = if product { self.words::<1>(at)?[0] } else { a };
        Ok(vec![Operation::Carry(carry, to, a, b, c)])
    }

    pub(super) fn logic(
        &mut self,
        stem: &str,
        name: &str,
        at: Operands<'_, '_, '_>,
    ) -> Result<Operation, Fault> {
        let to = self.predicate(at)?;
        Self::comma(at)?;
        let a = self.predicate(at)?;
        let binary = match stem {
            "not" => return Ok(Operation::NotPredicate(to, a)),
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            _ => return Err(at.unknown(name)),
        };
        Self::comma(at)?;
        Ok(Operation::BinaryPredicate(binary, to, a, self.predicate(at)?))
    }

    pub(super) fn compare(
        &mut self,
        comparison: &str,
        of: Type,
        name: &str,
        at: Operands<'_, '_, '_>,
    ) -> Result<Operation, Fault> {
        let comparison = match comparison {
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "lt" => Comparison::Less,
            "le" => Comparison::LessOrEqual,
            "gt" => Comparison::Greater,
            "ge" => Comparison::GreaterOrEqual,
            _ => return Err(at.unknown(name)),
        };
        let to = self.predicate(at)?;
        Self::comma(at)?;
        if of.bits == 64 {
            let a = self.long_in(at)?;
            Self::comma(at)?;
            return Ok(Operation::CompareLong(comparison, of.signed, to, a, self.long_in(at)?));
        }
        let a = self.word_in(of.bits == 16, at)?;
        Self::comma(at)?;
        Ok(Operation::CompareWord(comparison, of, to, a, self.word_in(of.bits == 16, at)?))
    }

    pub(super) fn select(&mut self, of: Type, at: Operands<'_, '_, '_>) -> Result<Operation, Fault> {
        if of.bits == 64 {
            let to = self.long_out(at)?;
            Self::comma(at)?;
            let a = self.long_in(at)?;
            Self::comma(at)?;
            let b = self.long_in(at)?;
            Self::comma(at)?;
            return Ok(Operation::SelectLong(to, a, b, self.predicate(at)?));
        }
        let to = self.word_out(at)?;
        let [a, b] = if of.bits == 16 { self.shorts(at)? } else { self.words(at)? };
        Self::comma(at)?;
        Ok(Operation::SelectWord(to, a, b, self.predicate(at)?))
    }

    pub(super) fn shuffle(&mut self, at: Operands<'_, '_, '_>) -> Result<Operation, Fault> {
        let to = self.word_out(at)?;
        let in_range = if at.takes("|") { Some(self.predicate(at)?) } else { None };
        let [value, source, clamp, named] = self.words(at)?;
        Ok(Operation::Shuffle(to, in_range, value, source, clamp, named))
    }

    pub(super) fn mov(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
        if name == "mov.pred" {
            let to = self.predicate(at)?;
            Self::comma(at)?;
            if let Some(value) = at.peek().and_then(number) {
                at.next()?;
                // p xor p, and its negation.
                let none = Operation::BinaryPredicate(Binary::Xor, to, to, to);
                let all = Operation::NotPredicate(to, to);
                return Ok(if value == 0 { vec![none] } else { vec![none, all] });
            }
            return Ok(vec![Operation::MovePredicate(to, self.predicate(at)?)]);
        }
        if at.takes("{") {
            let low = self.word_out(at)?;
            Self::comma(at)?;
            let high = self.word_out(at)?;
            at.expect("}")?;
            Self::comma(at)?;
            return Ok(vec![Operation::Unpack(low, high, self.long_out(at)?)]);
        }
        let to = self.register(at)?;
        Self::comma(at)?;
        let special = match at.peek() {
            Some("%tid.x") => Some(Special::Thread),
            Some("%ctaid.x") => Some(Special::Block),
            Some("%ntid.x") => Some(Special::BlockThreads),
            Some("%nctaid.x") => Some(Special::Blocks),
            Some("%laneid") => Some(Special::Lane),
            _ => None,
        };
        Ok(vec![match (to, special) {
            (Register::Word(to), Some(special)) => {
                at.next()?;
                Operation::MoveSpecial(to, special)
            }
            (Register::Word(to), None) => Operation::MoveWord(to, self.word_in(false, at)?),
            (Register::Short(to), None) => Operation::MoveWord(to, self.word_in(true, at)?),
            (Register::Long(to), None) if at.takes("{") => {
                let low = self.word_in(false, at)?;
                Self::comma(at)?;
                let high = self.word_in(false, at)?;
                at.expect("}")?;
                Operation::Pack(to, low, high)
            }
            (Register::Long(to), None) if at.peek().is_some_and(|name| self.locals.contains_key(name)) => {
                Operation::MoveLocal(to, self.locals[at.next()?])
            }
            (Register::Long(to), None) => Operation::MoveLong(to, self.long_in(at)?),
            _ => return Err(at.unknown(name)),
        }])
    }
}

fn carry(name: &str) -> Option<Carry> {
    Some(match name {
        "add.cc.u32" => Carry::AddCc,
        "addc.cc.u32" => Carry::AddcCc,
        "addc.u32" => Carry::Addc,
        "sub.cc.u32" => Carry::SubCc,
        "subc.cc.u32" => Carry::SubcCc,
        "subc.u32" => Carry::Subc,
        "mad.lo.cc.u32" => Carry::MadLoCc,
        "madc.lo.cc.u32" => Carry::MadcLoCc,
        "madc.lo.u32" => Carry::MadcLo,
        "mad.hi.cc.u32" => Carry::MadHiCc,
        "madc.hi.cc.u32" => Carry::MadcHiCc,
        "madc.hi.u32" => Carry::MadcHi,
        _ => return None,
    })
}

fn unary(stem: &str) -> Option<Unary> {
    Some(match stem {
        "not" => Unary::Not,
        "neg" => Unary::Negate,
        "abs" => Unary::Absolute,
        _ => return None,
    })
}

fn binary(stem: &str, of: Type) -> Option<Binary> {
    Some(match (stem, of.signed) {
        ("add", _) => Binary::Add,
        ("sub", _) => Binary::Sub,
        ("mul.lo", _) => Binary::MulLo,
        ("mul.hi", false) if of.bits == 32 => Binary::MulHi,
        ("mul.hi", true) if of.bits == 32 => Binary::MulHiSigned,
        ("and", _) => Binary::And,
        ("or", _) => Binary::Or,
        ("xor", _) => Binary::Xor,
        ("shl", _) => Binary::ShiftLeft,
        ("shr", false) => Binary::ShiftRight,
        ("shr", true) => Binary::ShiftRightSigned,
        ("min", false) => Binary::Min,
        ("max", false) => Binary::Max,
        ("min", true) => Binary::MinSigned,
        ("max", true) => Binary::MaxSigned,
        ("div", false) if of.bits < 64 => Binary::Div,
        ("rem", false) if of.bits < 64 => Binary::Rem,
        _ => return None,
    })
}
