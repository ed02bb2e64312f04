//! Instructions on memory and parameters, and calls.

use super::{Decoder, LOCAL_WINDOW, Operands, SHARED_WINDOW, kind};
use crate::code::{Access, Binary, Call, Operation, Register, Space, Type};
use crate::fault::Fault;
use crate::lexer::number;

impl Decoder<'_> {
    /// Between an address of a space and a generic one.
    pub(super) fn generic(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
        let window = match name {
            "cvta.global.u64" | "cvta.to.global.u64" => 0,
            "cvta.local.u64" => LOCAL_WINDOW,
            "cvta.to.local.u64" => LOCAL_WINDOW.wrapping_neg(),
            "cvta.shared.u64" => SHARED_WINDOW,
            "cvta.to.shared.u64" => SHARED_WINDOW.wrapping_neg(),
            _ => return Err(at.unknown(name)),
        };
        let to = self.long_out(at)?;
        Self::comma(at)?;
        let from = self.long_in(at)?;
        let window = self.constant_long(window);
        Ok(vec![Operation::BinaryLong(Binary::Add, to, from, window)])
    }

    pub(super) fn access(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
        let mut parts = name.split('.').skip(1).peekable();
        let load = name.starts_with("ld");
        let mut space = Space::Generic;
        let mut parameter = false;
        match parts.peek() {
            Some(&"global") => space = Space::Global,
            Some(&"shared") => space = Space::Shared,
            Some(&"local") => space = Space::Local,
            Some(&"param") => parameter = true,
            _ => {}
        }
        if space != Space::Generic || parameter {
            parts.next();
        }
        if parts.next_if_eq(&"nc").is_some() && load && space == Space::Global {
            space = Space::ReadOnly;
        }
        let count = match parts.peek() {
            Some(&"v2") => 2,
            Some(&"v4") => 4,
            _ => 1,
        };
        if count > 1 {
            parts.next();
        }
        let (Some(of), None) = (parts.next().and_then(kind), parts.next()) else {
            return Err(at.unknown(name));
        };
        let (base, offset, values) = if load {
            let values = self.vector(at)?;
            Self::comma(at)?;
            let (base, offset) = Self::address(at)?;
            (base, offset, values)
        } else {
            let (base, offset) = Self::address(at)?;
            Self::comma(at)?;
            (base, offset, self.stored(of, at)?)
        };
        if values.len() != count {
            return Err(at.wrong(&format!("{name} with {} registers", values.len())));
        }
        if parameter {
            return self.parameter(load, of, base, offset, &values, at);
        }
        let base = self.base(base, at)?;
        let access = Box::new(Access { space, kind: of, values, base, offset });
        Ok(vec![if load { Operation::Load(access) } else { Operation::Store(access) }])
    }

    /// Registers or numbers.
    pub(super) fn stored(&mut self, of: Type, at: Operands<'_, '_, '_>) -> Result<Vec<Register>, Fault> {
        let Some(value) = at.peek().and_then(number) else { return self.vector(at) };
        at.next()?;
        Ok(vec![if of.bits == 64 {
            Register::Long(self.constant_long(value.cast_unsigned()))
        } else {
            Register::Word(self.constant_word(value as u32))
        }])
    }

    /// Parameters are registers here: their addresses are known.
    pub(super) fn parameter(
        &mut self,
        load: bool,
        of: Type,
        base: &str,
        offset: i64,
        values: &[Register],
        at: Operands<'_, '_, '_>,
    ) -> Result<Vec<Operation>, Fault> {
        let block = self.scoped(base, at)?;
        let mut all = vec![];
        for (number, register) in values.iter().enumerate() {
            let byte = offset + (number * of.bytes()) as i64;
            let inside = byte >= 0 && byte as usize + of.bytes() <= block.bytes as usize;
            if !inside || !(byte as usize).is_multiple_of(of.bytes()) {
                return Err(
                    at.wrong(&format!("byte {byte} of {base} is read or written as {} bits", of.bits))
                );
            }
            let word = block.first + byte as u32 / 4;
            let bit = byte as u32 % 4 * 8;
            all.push(match (*register, of.bits, load) {
                (Register::Word(register), 32, true) => Operation::MoveWord(register, word),
                (Register::Word(register), 32, false) => Operation::MoveWord(word, register),
                (Register::Long(register), 64, true) => Operation::Pack(register, word, word + 1),
                (Register::Long(register), 64, false) => Operation::Unpack(word, word + 1, register),
                (register, 8 | 16, true) => Operation::Extract(register, word, bit, of),
                _ => return Err(at.unknown("a parameter that is not written in whole words")),
            });
        }
        Ok(all)
    }

    pub(super) fn call(&mut self, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
        let mut result = None;
        if at.takes("(") {
            let name = at.next()?;
            result = Some(self.scoped(name, at)?);
            at.expect(")")?;
            Self::comma(at)?;
        }
        let name = at.next()?;
        let callee = self.module.number(name).ok_or_else(|| at.wrong(&format!("no function {name}")))?;
        let mut arguments = vec![];
        if at.takes(",") {
            at.expect("(")?;
            while !at.takes(")") {
                let name = at.next()?;
                arguments.push(self.scoped(name, at)?);
                at.takes(",");
            }
        }
        let declared = self.module.source(callee);
        let fits = declared.parameters.len() == arguments.len()
            && declared.parameters.iter().zip(&arguments).all(|(p, a)| p.bytes == a.bytes)
            && declared.result.as_ref().map(|p| p.bytes) == result.map(|block| block.bytes);
        if !fits {
            return Err(at.wrong(&format!("{name} is called with other parameters than it has")));
        }
        Ok(vec![Operation::Call(Box::new(Call { callee, arguments, result }))])
    }
}
