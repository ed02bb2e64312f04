//! The words of a text in PTX.

use crate::fault::Fault;

/// A word (a name, number, directive or opcode, dots included) or one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: u32,
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.' | b'"')
}

/// All words of a text, comments left out.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    let bytes = text.as_bytes();
    let (mut all, mut at, mut line) = (Vec::with_capacity(bytes.len() / 6), 0, 1);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            // A sign and its digits are one word.
            b'-' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => at += 1,
            b',' | b';' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'+' | b':' | b'|' | b'<' | b'>'
            | b'=' | b'@' | b'!' => {
                at += 1;
                all.push(Token { text: &text[start..at], line });
                continue;
            }
            byte if in_word(byte) => {}
            _ => {
                let what = format!("a sign that PTX does not have: {:?}", &text.get(start..start + 1));
                return Err(Fault::Text { line, what });
            }
        }
        while at < bytes.len() && in_word(bytes[at]) {
            at += 1;
        }
        all.push(Token { text: &text[start..at], line });
    }
    Ok(all)
}

/// Reads tokens one after another.
pub(crate) struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'t, 'a> Cursor<'t, 'a> {
    pub(crate) fn new(tokens: &'t [Token<'a>]) -> Self {
        Self { tokens, at: 0 }
    }

    pub(crate) fn place(&self) -> usize {
        self.at
    }

    pub(crate) fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |token| token.line)
    }

    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.text)
    }

    pub(crate) fn next(&mut self) -> Result<&'a str, Fault> {
        let word = self.peek().ok_or_else(|| self.wrong("the text ends too early"))?;
        self.at += 1;
        Ok(word)
    }

    /// Takes the word if it is next.
    pub(crate) fn takes(&mut self, word: &str) -> bool {
        let there = self.peek() == Some(word);
        self.at += usize::from(there);
        there
    }

    pub(crate) fn expect(&mut self, word: &str) -> Result<(), Fault> {
        if self.takes(word) {
            return Ok(());
        }
        Err(self.wrong(&format!("`{word}` is missing before {:?}", self.peek())))
    }

    pub(crate) fn number(&mut self) -> Result<i64, Fault> {
        let word = self.next()?;
        number(word).ok_or_else(|| self.wrong(&format!("`{word}` is no number")))
    }

    pub(crate) fn wrong(&self, what: &str) -> Fault {
        Fault::Text { line: self.line(), what: what.to_owned() }
    }

    pub(crate) fn unknown(&self, what: &str) -> Fault {
        Fault::Unknown { line: self.line(), what: what.to_owned() }
    }
}

/// A whole number as PTX writes it; from 2^63 on as the negative number of the same bits.
pub(crate) fn number(word: &str) -> Option<i64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    if let Some(digits) = word.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(u64::cast_signed);
    }
    word.parse().ok().or_else(|| word.parse().ok().map(u64::cast_signed))
}
