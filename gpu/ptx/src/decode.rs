//! The body of a function: names to places, words to instructions.

use std::collections::HashMap;

use crate::code::{
    Access, Base, Binary, Block, Call, Carry, Comparison, Function, Guard, Instruction, Operation, Predicate,
    Register, Space, Special, Type, Unary,
};
use crate::fault::Fault;
use crate::flow;
use crate::lexer::{Cursor, Token, number};
use crate::module::{Declared, Module, Source, Variable, declaration};

/// Where the local and the shared memory are among generic addresses; no process has memory there.
pub(crate) const LOCAL_WINDOW: u64 = 0x10 << 56;
/// See [`LOCAL_WINDOW`].
pub(crate) const SHARED_WINDOW: u64 = 0x20 << 56;

/// The type that a name without its dot stands for.
pub(crate) fn kind(name: &str) -> Option<Type> {
    let (class, bits) = name.split_at_checked(1)?;
    let bits = bits.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?;
    matches!(class, "u" | "s" | "b").then_some(Type { bits, signed: class == "s" })
}

/// A register of any class.
#[derive(Debug, Clone, Copy)]
enum Named {
    Predicate(Predicate),
    Register(Register),
}

/// Decodes a function.
///
/// # Errors
/// [`Fault`]: what is not of the form that nvcc writes, not known here, or wrong whatever the data.
pub(crate) fn function(module: &Module, source: &Source, body: &[Token<'_>]) -> Result<Function, Fault> {
    let mut decoder = Decoder::new(module, source);
    let mut at = Cursor::new(body);
    while at.peek().is_some() {
        decoder.statement(&mut at)?;
    }
    decoder.finish()
}

struct Decoder<'m> {
    module: &'m Module,
    function: Function,
    /// Prefixes of registers that are numbered, and names of those that are not.
    registers: HashMap<String, (&'static str, u32)>,
    /// Parameters in scope, innermost last.
    blocks: Vec<(String, Block)>,
    /// How many of them there were when each open scope began.
    scopes: Vec<usize>,
    locals: HashMap<String, u32>,
    labels: HashMap<String, u32>,
    /// Branches whose label is to come.
    open: Vec<(usize, String, u32)>,
    word_constants: HashMap<u32, u32>,
    long_constants: HashMap<u64, u32>,
    /// Those that are no predicates.
    declared: Vec<Register>,
}

type Operands<'c, 't, 'a> = &'c mut Cursor<'t, 'a>;

impl<'m> Decoder<'m> {
    fn new(module: &'m Module, source: &Source) -> Self {
        let mut decoder = Self {
            module,
            function: Function {
                name: source.name.clone(),
                code: vec![],
                joins: vec![],
                words: 0,
                longs: 0,
                predicates: 0,
                word_constants: vec![],
                long_constants: vec![],
                parameters: vec![],
                result: None,
                local_bytes: 0,
                unwritten: vec![],
            },
            registers: HashMap::new(),
            blocks: vec![],
            scopes: vec![],
            locals: HashMap::new(),
            labels: HashMap::new(),
            open: vec![],
            word_constants: HashMap::new(),
            long_constants: HashMap::new(),
            declared: vec![],
        };
        decoder.function.parameters = source.parameters.iter().map(|p| decoder.block(p)).collect();
        decoder.function.result = source.result.as_ref().map(|p| decoder.block(p));
        decoder
    }

    fn block(&mut self, declared: &Declared) -> Block {
        let block = Block { first: self.function.words, bytes: declared.bytes };
        self.function.words += block.words();
        self.blocks.push((declared.name.clone(), block));
        block
    }

    fn statement(&mut self, at: Operands<'_, '_, '_>) -> Result<(), Fault> {
        let line = at.line();
        match at.next()? {
            "{" => self.scopes.push(self.blocks.len()),
            "}" => {
                let outer = self.scopes.pop().ok_or_else(|| at.wrong("a brace that nothing opened"))?;
                self.blocks.truncate(outer);
            }
            ".reg" => return self.declare_registers(at),
            ".param" => {
                let (name, bytes, ..) = declaration(at)?;
                at.expect(";")?;
                self.block(&Declared { name, bytes });
            }
            ".local" => {
                let (name, bytes, ..) = declaration(at)?;
                at.expect(";")?;
                let place = self.function.local_bytes.next_multiple_of(16);
                self.function.local_bytes = place + bytes;
                self.locals.insert(name, place);
            }
            // The module has read it.
            ".shared" | ".pragma" | ".loc" => while at.next()? != ";" {},
            "@" => {
                let negated = at.takes("!");
                let predicate = self.predicate(at)?;
                let name = at.next()?;
                self.instruction(name, at, line, Some(Guard { predicate, negated }))?;
            }
            label if at.peek() == Some(":") => {
                at.next()?;
                self.labels.insert(label.to_owned(), self.function.code.len() as u32);
            }
            name => self.instruction(name, at, line, None)?,
        }
        Ok(())
    }

    fn declare_registers(&mut self, at: Operands<'_, '_, '_>) -> Result<(), Fault> {
        let class = match at.next()? {
            ".pred" => "pred",
            ".b16" => "b16",
            ".b32" => "b32",
            ".b64" => "b64",
            other => return Err(at.unknown(other)),
        };
        let name = at.next()?.to_owned();
        let mut count = 1;
        if at.takes("<") {
            count = at.number()? as u32;
            at.expect(">")?;
        }
        at.expect(";")?;
        let next = match class {
            "pred" => &mut self.function.predicates,
            "b64" => &mut self.function.longs,
            _ => &mut self.function.words,
        };
        for number in 0..count {
            let register = match class {
                "pred" => continue,
                "b16" => Register::Short(*next + number),
                "b32" => Register::Word(*next + number),
                _ => Register::Long(*next + number),
            };
            self.declared.push(register);
        }
        self.registers.insert(name, (class, *next));
        *next += count;
        Ok(())
    }

    fn instruction(
        &mut self,
        name: &str,
        at: Operands<'_, '_, '_>,
        line: u32,
        guard: Option<Guard>,
    ) -> Result<(), Fault> {
        let operations = self.operations(name, at)?;
        at.expect(";")?;
        for operation in operations {
            self.function.code.push(Instruction { operation, guard, line });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Function, Fault> {
        for (place, label, line) in &self.open {
            let target = *self
                .labels
                .get(label)
                .ok_or_else(|| Fault::Text { line: *line, what: format!("no label {label}") })?;
            self.function.code[*place].operation = Operation::Branch(target);
        }
        // Constants come behind the registers.
        flow::check_flags(&self.function)?;
        let first_word = self.function.words;
        for (value, number) in &self.word_constants {
            self.function.word_constants.push((*number, *value));
        }
        for (value, number) in &self.long_constants {
            self.function.long_constants.push((*number, *value));
        }
        debug_assert!(self.function.word_constants.iter().all(|(place, _)| *place < first_word));
        self.function.joins = flow::joins(&self.function);
        self.function.unwritten = flow::unwritten(&self.function, &self.declared);
        Ok(self.function)
    }

    // Operands

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

    fn register(&self, at: Operands<'_, '_, '_>) -> Result<Register, Fault> {
        let word = at.next()?;
        match self.named(word, at)? {
            Named::Register(register) => Ok(register),
            Named::Predicate(_) => Err(at.wrong(&format!("{word} is a predicate"))),
        }
    }

    /// Where a predicate is; numbers stand for those that always or never hold.
    fn predicate(&mut self, at: Operands<'_, '_, '_>) -> Result<Predicate, Fault> {
        let word = at.next()?;
        match self.named(word, at)? {
            Named::Predicate(place) => Ok(place),
            Named::Register(_) => Err(at.wrong(&format!("{word} is no predicate"))),
        }
    }

    fn constant_word(&mut self, value: u32) -> u32 {
        let next = &mut self.function.words;
        *self.word_constants.entry(value).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    fn constant_long(&mut self, value: u64) -> u32 {
        let next = &mut self.function.longs;
        *self.long_constants.entry(value).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    /// A register of at most 32 bits to write to.
    fn word_out(&self, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
        match self.register(at)? {
            Register::Word(place) | Register::Short(place) => Ok(place),
            Register::Long(_) => Err(at.wrong("a register of 64 bits where one of 32 belongs")),
        }
    }

    fn long_out(&self, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
        match self.register(at)? {
            Register::Long(place) => Ok(place),
            _ => Err(at.wrong("a register of 32 bits where one of 64 belongs")),
        }
    }

    /// A register, number or address of up to 32 bits; `short` where numbers have 16.
    fn word_in(&mut self, short: bool, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
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

    fn long_in(&mut self, at: Operands<'_, '_, '_>) -> Result<u32, Fault> {
        let Some(word) = at.peek() else { return Err(at.wrong("an operand is missing")) };
        if let Some(value) = number(word).map(i64::cast_unsigned).or_else(|| self.address_of(word)) {
            at.next()?;
            return Ok(self.constant_long(value));
        }
        self.long_out(at)
    }

    /// The address of a variable, in its own space. Those of local memory are known only in execution.
    fn address_of(&self, word: &str) -> Option<u64> {
        match self.module.variable(word)? {
            Variable::Global(address) => Some(address),
            Variable::Shared(place) => Some(u64::from(place)),
        }
    }

    fn comma(at: Operands<'_, '_, '_>) -> Result<(), Fault> {
        at.expect(",")
    }

    /// `[base]` or `[base+offset]`: the base's name and the offset.
    fn address<'a>(at: Operands<'_, '_, 'a>) -> Result<(&'a str, i64), Fault> {
        at.expect("[")?;
        let base = at.next()?;
        let offset = if at.takes("+") { at.number()? } else { 0 };
        at.expect("]")?;
        Ok((base, offset))
    }

    /// One register, or several in braces.
    fn vector(&self, at: Operands<'_, '_, '_>) -> Result<Vec<Register>, Fault> {
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

    fn base(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Base, Fault> {
        if let Some(address) = self.address_of(name) {
            return Ok(Base::Long(self.constant_long(address)));
        }
        match self.named(name, at)? {
            Named::Register(Register::Long(place)) => Ok(Base::Long(place)),
            Named::Register(Register::Word(place)) => Ok(Base::Word(place)),
            _ => Err(at.wrong(&format!("{name} is no address"))),
        }
    }

    fn scoped(&self, name: &str, at: Operands<'_, '_, '_>) -> Result<Block, Fault> {
        let found = self.blocks.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, block)| *block).ok_or_else(|| at.wrong(&format!("{name} is no parameter")))
    }

    // Operations

    /// What an instruction does, in one step or several.
    fn operations(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
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
    fn regular(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Operation, Fault> {
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

    fn words<const N: usize>(&mut self, at: Operands<'_, '_, '_>) -> Result<[u32; N], Fault> {
        let mut all = [0; N];
        for word in &mut all {
            Self::comma(at)?;
            *word = self.word_in(false, at)?;
        }
        Ok(all)
    }

    fn shorts<const N: usize>(&mut self, at: Operands<'_, '_, '_>) -> Result<[u32; N], Fault> {
        let mut all = [0; N];
        for word in &mut all {
            Self::comma(at)?;
            *word = self.word_in(true, at)?;
        }
        Ok(all)
    }

    fn carry(&mut self, carry: Carry, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
        let to = self.word_out(at)?;
        let product = !matches!(
            carry,
            Carry::AddCc | Carry::AddcCc | Carry::Addc | Carry::SubCc | Carry::SubcCc | Carry::Subc
        );
        let [a, b] = self.words(at)?;
        let c = if product { self.words::<1>(at)?[0] } else { a };
        Ok(vec![Operation::Carry(carry, to, a, b, c)])
    }

    fn logic(&mut self, stem: &str, name: &str, at: Operands<'_, '_, '_>) -> Result<Operation, Fault> {
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

    fn compare(
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

    fn select(&mut self, of: Type, at: Operands<'_, '_, '_>) -> Result<Operation, Fault> {
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

    fn shuffle(&mut self, at: Operands<'_, '_, '_>) -> Result<Operation, Fault> {
        let to = self.word_out(at)?;
        let in_range = if at.takes("|") { Some(self.predicate(at)?) } else { None };
        let [value, source, clamp, named] = self.words(at)?;
        Ok(Operation::Shuffle(to, in_range, value, source, clamp, named))
    }

    fn mov(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
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

    /// Between an address of a space and a generic one.
    fn generic(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
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

    fn access(&mut self, name: &str, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
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
    fn stored(&mut self, of: Type, at: Operands<'_, '_, '_>) -> Result<Vec<Register>, Fault> {
        let Some(value) = at.peek().and_then(number) else { return self.vector(at) };
        at.next()?;
        Ok(vec![if of.bits == 64 {
            Register::Long(self.constant_long(value.cast_unsigned()))
        } else {
            Register::Word(self.constant_word(value as u32))
        }])
    }

    /// Parameters are registers here: their addresses are known.
    fn parameter(
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

    fn call(&mut self, at: Operands<'_, '_, '_>) -> Result<Vec<Operation>, Fault> {
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
