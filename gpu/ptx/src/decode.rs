//! The body of a function: names to places, words to instructions.

mod memory;
mod operands;
mod operations;

use std::collections::HashMap;

use crate::code::{Block, Function, Guard, Instruction, Operation, Register, Type};
use crate::fault::Fault;
use crate::flow;
use crate::lexer::{Cursor, Token};
use crate::module::{Declared, Module, Source, declaration};

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
}
