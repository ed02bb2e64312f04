//! Files of lines: a name, a comma, a whole number.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use zeroize::{Zeroize, Zeroizing};

/// Why a file of lines is none, or does not fit another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    /// No comma, or no name before it.
    #[error("line {line}: write a name, a comma and a whole number")]
    Form {
        /// Place of the line, from 1.
        line: usize,
    },
    /// Not a number, or too large a one.
    #[error("line {line}, `{name}`: the number must be whole, from 0 to {largest}")]
    Number {
        /// Place of the line, from 1.
        line: usize,
        /// Name of the line.
        name: String,
        /// The largest number that fits.
        largest: u64,
    },
    /// A name stands there a second time.
    #[error("line {line}: `{name}` stands here a second time")]
    Twice {
        /// Place of the line, from 1.
        line: usize,
        /// The name that stands there twice.
        name: String,
    },
    /// The file has no line.
    #[error("there is no line in it")]
    Empty,
    /// A name of the order that the price list lacks.
    #[error("the order's line {line}, `{name}`, has no price")]
    NoPrice {
        /// Which line of the order, from 1.
        line: usize,
        /// Its name in the order.
        name: String,
    },
}

/// Numbers by name: quantities (`u16`) or prices in base units (`u32`). Numbers are wiped, and printed redacted.
pub struct Lines<T: Zeroize> {
    names: Vec<String>,
    numbers: Zeroizing<Vec<T>>,
}

impl<T: Zeroize> fmt::Debug for Lines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("names", &self.names).finish_non_exhaustive()
    }
}

impl<T: Zeroize + FromStr + Copy + Largest> Lines<T> {
    /// Reads `name,number` line by line: the number stands after the last comma. Empty lines and those that begin with
    /// `#` are left out.
    ///
    /// # Errors
    /// [`LinesError`], with the line that it is about.
    pub fn parse(text: &str) -> Result<Self, LinesError> {
        let (mut names, mut numbers) = (Vec::new(), Zeroizing::new(Vec::with_capacity(text.lines().count())));
        let mut seen = HashMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (name, number) = text.rsplit_once(',').ok_or(LinesError::Form { line })?;
            let name = name.trim().to_owned();
            if name.is_empty() {
                return Err(LinesError::Form { line });
            }
            let Ok(number) = number.trim().parse() else {
                return Err(LinesError::Number { line, name, largest: T::LARGEST });
            };
            if seen.insert(name.clone(), ()).is_some() {
                return Err(LinesError::Twice { line, name });
            }
            names.push(name);
            numbers.push(number);
        }
        if names.is_empty() { Err(LinesError::Empty) } else { Ok(Self { names, numbers }) }
    }

    /// The names in their order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The numbers in the same order.
    #[must_use]
    pub fn numbers(&self) -> &[T] {
        &self.numbers
    }

    /// The numbers of these names.
    ///
    /// # Errors
    /// [`LinesError::NoPrice`].
    pub fn of(&self, names: &[String]) -> Result<Zeroizing<Vec<T>>, LinesError> {
        let places: HashMap<&str, usize> = self.names.iter().map(String::as_str).zip(0..).collect();
        let mut found = Zeroizing::new(Vec::with_capacity(names.len()));
        for (line, name) in (1..).zip(names) {
            let place = places.get(name.as_str());
            let place = place.ok_or_else(|| LinesError::NoPrice { line, name: name.clone() })?;
            found.push(self.numbers[*place]);
        }
        Ok(found)
    }
}

/// What an error says that a number may be.
pub trait Largest {
    /// The largest number that the line may have.
    const LARGEST: u64;
}

impl Largest for u16 {
    const LARGEST: u64 = u16::MAX as u64;
}

impl Largest for u32 {
    const LARGEST: u64 = u32::MAX as u64;
}
