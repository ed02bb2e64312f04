//! A module: the text of a translation unit, its variables, and its functions, decoded when they are first used.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::code::Function;
use crate::decode;
use crate::fault::Fault;
use crate::lexer::{Cursor, Token, tokens};

/// A parameter as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) bytes: u32,
}

/// Where a function is in the text.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Declared>,
    pub(crate) result: Option<Declared>,
    /// The tokens of its body, without the outer braces.
    body: std::ops::Range<usize>,
    decoded: OnceLock<Result<Arc<Function>, Fault>>,
}

/// What a name of a variable stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    /// An address of this process.
    Global(u64),
    /// A place in a block's shared memory.
    Shared(u32),
}

/// A translation unit of device code.
pub struct Module {
    tokens: Vec<Token<'static>>,
    functions: Vec<Source>,
    by_name: HashMap<String, u32>,
    kernels: HashMap<String, u32>,
    variables: HashMap<String, Variable>,
    shared_bytes: u32,
    globals: Vec<(u64, usize)>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a module of {} functions", self.functions.len())
    }
}

impl Module {
    /// Reads a text as nvcc writes it. The text and the module's variables live as long as the process.
    ///
    /// # Errors
    /// [`Fault::Text`] or [`Fault::Unknown`]. Bodies of functions are looked at when they are first executed.
    pub fn new(text: &str) -> Result<Self, Fault> {
        let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
        let mut module = Self {
            tokens: tokens(text)?,
            functions: vec![],
            by_name: HashMap::new(),
            kernels: HashMap::new(),
            variables: HashMap::new(),
            shared_bytes: 0,
            globals: vec![],
        };
        let tokens = std::mem::take(&mut module.tokens);
        module.read(&mut Cursor::new(&tokens), &tokens)?;
        module.tokens = tokens;
        Ok(module)
    }

    /// The names of all kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// Decodes everything, so that what is not known shows although nothing executes it.
    ///
    /// # Errors
    /// The first [`Fault`] of a function.
    pub fn check(&self) -> Result<(), Fault> {
        (0..self.functions.len()).try_for_each(|number| self.function(number as u32).map(|_| ()))
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<u32> {
        self.kernels.get(name).copied()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn source(&self, number: u32) -> &Source {
        &self.functions[number as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.functions.len()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<Variable> {
        self.variables.get(name).copied()
    }

    pub(crate) fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Addresses and lengths of the variables in global memory.
    pub(crate) fn globals(&self) -> &[(u64, usize)] {
        &self.globals
    }

    pub(crate) fn function(&self, number: u32) -> Result<Arc<Function>, Fault> {
        let source = self.source(number);
        let body = &self.tokens[source.body.clone()];
        source.decoded.get_or_init(|| decode::function(self, source, body).map(Arc::new)).clone()
    }

    fn read(&mut self, at: &mut Cursor<'_, 'static>, all: &[Token<'static>]) -> Result<(), Fault> {
        while let Some(word) = at.peek() {
            match word {
                ".version" | ".target" | ".address_size" => {
                    at.next()?;
                    at.next()?;
                }
                ".visible" | ".weak" | ".extern" => {
                    at.next()?;
                }
                ".entry" | ".func" => self.read_function(at, all)?,
                ".global" | ".const" | ".shared" => self.read_variable(at)?,
                _ => return Err(at.unknown(word)),
            }
        }
        Ok(())
    }

    fn read_function(&mut self, at: &mut Cursor<'_, 'static>, all: &[Token<'static>]) -> Result<(), Fault> {
        let entry = at.next()? == ".entry";
        let result = if at.takes("(") { parameters(at)?.pop() } else { None };
        let name = at.next()?.to_owned();
        let parameters = if at.takes("(") { parameters(at)? } else { vec![] };
        // What the kernel asks for: blocks and registers, nothing that is executed.
        while at.peek().is_some_and(|word| word != "{" && word != ";") {
            at.next()?;
        }
        if at.takes(";") {
            return Ok(());
        }
        at.expect("{")?;
        let start = at.place();
        let mut depth = 1;
        while depth > 0 {
            match at.next()? {
                "{" => depth += 1,
                "}" => depth -= 1,
                // Shared memory is one for all functions, wherever it is declared.
                ".shared" => {
                    let mut declaration = Cursor::new(&all[at.place() - 1..]);
                    self.read_variable(&mut declaration)?;
                }
                _ => {}
            }
        }
        let number = self.functions.len() as u32;
        let twice = self.by_name.insert(name.clone(), number);
        if twice.is_some() {
            return Err(at.wrong(&format!("{name} is defined twice")));
        }
        if entry {
            self.kernels.insert(name.clone(), number);
        }
        let body = start..at.place() - 1;
        self.functions.push(Source { name, parameters, result, body, decoded: OnceLock::new() });
        Ok(())
    }

    fn read_variable(&mut self, at: &mut Cursor<'_, 'static>) -> Result<(), Fault> {
        let shared = at.next()? == ".shared";
        let (name, bytes, element, align) = declaration(at)?;
        let mut values = vec![];
        if at.takes("=") {
            if at.takes("{") {
                while !at.takes("}") {
                    values.push(at.number()?);
                    at.takes(",");
                }
            } else {
                values.push(at.number()?);
            }
        }
        at.expect(";")?;
        let variable = if shared {
            let place = self.shared_bytes.next_multiple_of(align.max(16));
            self.shared_bytes = place + bytes;
            Variable::Shared(place)
        } else {
            let mut content: Vec<u8> =
                values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(element)).collect();
            content.resize(bytes as usize, 0);
            let place = leak(&content);
            self.globals.push((place, content.len()));
            Variable::Global(place)
        };
        self.variables.insert(name, variable);
        Ok(())
    }
}

/// For as long as the process lives, at a multiple of 256.
fn leak(content: &[u8]) -> u64 {
    let buffer = Box::leak(vec![0u8; content.len() + 256].into_boxed_slice());
    let skipped = buffer.as_ptr().align_offset(256);
    buffer[skipped..skipped + content.len()].copy_from_slice(content);
    buffer[skipped..].as_ptr() as u64
}

/// `.align 4 .b8 name[8]`: the name, all bytes, bytes of an element and the alignment.
pub(crate) fn declaration(at: &mut Cursor<'_, '_>) -> Result<(String, u32, usize, u32), Fault> {
    let mut align = 1;
    if at.takes(".align") {
        align = at.number()? as u32;
    }
    let kind = at.next()?;
    let element = match decode::kind(kind.trim_start_matches('.')) {
        Some(kind) => kind.bytes(),
        None => return Err(at.unknown(kind)),
    };
    let name = at.next()?.to_owned();
    let mut count = 1;
    if at.takes("[") {
        count = at.number()? as u32;
        at.expect("]")?;
    }
    Ok((name, count * element as u32, element, align))
}

/// Up to the closing bracket.
fn parameters(at: &mut Cursor<'_, '_>) -> Result<Vec<Declared>, Fault> {
    let mut all = vec![];
    while !at.takes(")") {
        at.expect(".param")?;
        let (name, bytes, ..) = declaration(at)?;
        all.push(Declared { name, bytes });
        at.takes(",");
    }
    Ok(all)
}
