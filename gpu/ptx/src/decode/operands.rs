//! Names, numbers and addresses, as instructions have them.

use super::{Decoder, Operands};
use crate::code::{Base, Block, Predicate, Register};
use crate::fault::Fault;
use crate::lexer::{Cursor, number};
use crate::module::Variable;

/// A register of any class.
#[derive(Debug, Clone, Copy)]
enum Named {
    Predicate(Predicate),
    Register(Register),
}

impl Decoder<'_> {
    fn named(&self, word: &str, at: &Cursor<'_, '_>) -> Result<Named, Fault> {
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let found = match self.registers.get(word) {
            Some(found) => Some((*found, 0)),
            None => {
                self.registers.get(stem).and_then(|found| Some((*found, word[stem.len()..].parse().ok()?)))
            }
        };
        let ((class, first), number): ((&str, u32), u32) =
            found.ok_or_else(|| at.wrong(&format!("{word} is no register")))?;
        let place = first + number;
        Ok(match class {
            "pred" => Named::Predicate(place),
            "b16" => Named::Register(Register::Short(place)),
            "b32" => Named::Register(Register::Word(place)),
            _ => Named::Register(Register::Long(place)),
        })
    }

    pub(super) fn register(&self, at: Operands<'_, '_, '_>) -> Result<Register, Fault> {
        let word = at.next()?;
        match self.named(word, at)? {
            Named::Register(register) => Ok(register),
            Named::Predicate(_) => Err(at.wrong(&format!("{word} is a predicate"))),
        }
    }

    /// Where a predicate is; numbers stand for those that always or never hold.
    pub(super) fn predicate(&mut self, at: Operands<'_, '_, '_>) -> Result<Predicate, Fault> {
        let word = at.next()?;
        match self.named(word, at)? {
            Named::Predicate(place) => Ok(place),
            Named::Register(_) => Err(at.wrong(&format!("{word} is no predicate"))),
        }
    }

    pub(super) fn constant_word(&mut self, value: u32) -> u32 {
        let next = &mut self.function.words;
        *self.word_constants.entry(value).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    pub(super) fn constant_long(&mut self, value: u64) -> u32 {
        let next = &mut self.function.longs;
        *self.long_constants.entry(value).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    /// A register of at most 32 bits to write to.
    pub(super) fn word_out(&self, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
        match self.register(at)? {
            Register::Word(place) | Register::Short(place) => Ok(place),
            Register::Long(_) => Err(at.wrong("a register of 64 bits where one of 32 belongs")),
        }
    }

    pub(super) fn long_out(&self, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
        match self.register(at)? {
            Register::Long(place) => Ok(place),
            _ => Err(at.wrong("a register of 32 bits where one of 64 belongs")),
        }
    }

    /// A register, number or address of up to 32 bits; `short` where numbers have 16.
    pub(super) fn word_in(&mut self, short: bool, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
        let Some(word) = at.peek() else { return Err(at.wrong("an operand is missing")) };
        if let Some(value) = number(word) {
            at.next()?;
            let value = value as u32;
            return Ok(self.constant_word(if short { value & 0xffff } else { value }));
        }
        if let Some(Variable::Shared(place)) = self.module.variable(word) {
            at.next()?;
            return Ok(self.constant_word(place));
        }
        self.word_out(at)
    }

    pub(super) fn long_in(&mut self, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
        let Some(word) = at.peek() else { return Err(at.wrong("an operand is missing")) };
        if let Some(value) = number(word).map(i64::cast_unsigned).or_else(|| self.address_of(word)) {
            at.next()?;
            return Ok(self.constant_long(value));
        }
        self.long_out(at)
    }

    /// The address of a variable, in its own space. Those of local memory are known only in execution.
    pub(super) fn address_of(&self, word: &str) -> Option<u64> {
        match self.module.variable(word)? {
            Variable::Global(address) => Some(address),
            Variable::Shared(place) => Some(u64::from(place)),
        }
    }

    pub(super) fn comma(at: Operands<'_, '_, '_>) -> Result<(), Fault> {
        at.expect(",")
    }

    /// `[base]` or `[base+offset]`: the base's name and the offset.
    pub(super) fn address<'a>(at: Operands<'_, '_, 'a>) -> Result<(&'a str, i64), Fault> {
        at.expect("[")?;
        let base = at.next()?;
        let offset = if at.takes("+") { at.number()? } else { 0 };
        at.expect("]")?;
        Ok((base, offset))
    }

    /// One register, or several in braces.
    pub(super) fn vector(&self, at: Operands<'_, '_, '_>) -> Result<Vec<Register>, Fault> {
        if !at.takes("{") {
            return Ok(vec![self.register(at)?]);
        }
        let mut all = vec![];
        while !at.takes("}") {
            all.push(self.register(at)?);
            at.takes(",");
        }
        Ok(all)
    }

    pub(super) fn base(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Base, Fault> {
        if let Some(address) = self.address_of(name) {
            return Ok(Base::Long(self.constant_long(address)));
        }
        match self.named(name, at)? {
            Named::Register(Register::Long(place)) => Ok(Base::Long(place)),
            Named::Register(Register::Word(place)) => Ok(Base::Word(place)),
            _ => Err(at.wrong(&format!("{name} is no address"))),
        }
    }

    pub(super) fn scoped(&self, name: &str, at: Operands<'_, '_, '_>) -> Result<Block, Fault> {
        let found = self.blocks.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, block)| *block).ok_or_else(|| at.wrong(&format!("{name} is no parameter")))
    }
}
