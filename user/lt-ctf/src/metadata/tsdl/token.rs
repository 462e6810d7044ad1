// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tokens of TSDL, the language of CTF 1.8 metadata: identifiers, numbers, strings and punctuation.

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or a keyword: keywords are reserved only where a type is expected.
    Word(String),
    Text(String),
    /// A number without its sign, or a character.
    Number(u64),
    /// Punctuation.
    Mark(&'static str),
    End,
}

/// Longest first, since the first match is used.
const MARKS: [&str; 21] = [
    "...", ":=", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", ".", "=", "*", "-",
    "+", "/", "$",
];

/// The tokens of a text, and the position of the next one.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            let length = if let Some(comment) = rest.strip_prefix(b"/*") {
                let Some(end) = memchr::memmem::find(comment, b"*/") else {
                    self.at = self.text.len();
                    return Err("a comment without an end".into());
                };
                end + 4
            } else if rest.starts_with(b"//") {
                memchr::memchr(b'\n', rest).unwrap_or(rest.len())
            } else {
                rest.len() - rest.trim_ascii_start().len()
            };
            if length == 0 {
                return Ok(());
            }
            self.at += length;
        }
    }

    /// Returns the next token, and its byte offset.
    pub(super) fn next(&mut self) -> Result<(usize, Token), String> {
        self.skip()?;
        let begin = self.at;
        let rest = self.rest();
        let token = match rest.first() {
            None => Token::End,
            Some(b'"') => Token::Text(String::from_utf8_lossy(&self.quoted(b'"')?).into_owned()),
            Some(b'\'') => match self.quoted(b'\'')?.as_slice() {
                [byte] => Token::Number((*byte).into()),
                _ => return Err("a character constant that is not one byte".into()),
            },
            Some(b'0'..=b'9') => Token::Number(self.number()?),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => Token::Word(self.word()),
            Some(other) => {
                let mark = MARKS.iter().find(|mark| rest.starts_with(mark.as_bytes()));
                let mark = mark.ok_or_else(|| format!("unexpected byte {other:#04x}"))?;
                self.at += mark.len();
                Token::Mark(mark)
            }
        };
        Ok((begin, token))
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let length = rest.iter().position(|b| !is_part(b)).unwrap_or(rest.len());
        self.at += length;
        String::from_utf8_lossy(rest.get(..length).unwrap_or_default()).into_owned()
    }

    fn number(&mut self) -> Result<u64, String> {
        let word = self.word();
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let hexadecimal = ["0x", "0X"].iter().find_map(|p| digits.strip_prefix(p));
        let parsed = match hexadecimal {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
            None => digits.parse(),
        };
        parsed.map_err(|_| format!("not a number of 64 bits: {word}"))
    }

    /// Returns the text between two quotes, with escapes replaced.
    fn quoted(&mut self, quote: u8) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let next = |tokens: &mut Self| {
            let byte = tokens.text.get(tokens.at + 1).copied();
            tokens.at = (tokens.at + 1).min(tokens.text.len());
            byte
        };
        loop {
            let byte = match next(self) {
                Some(byte) if byte == quote => break,
                Some(b'\\') => match next(self) {
                    Some(b'n') => b'\n',
                    Some(b't') => b'\t',
                    Some(b'r') => b'\r',
                    Some(b'a') => 7,
                    Some(b'b') => 8,
                    Some(b'v') => 11,
                    Some(b'f') => 12,
                    Some(b'x') => self.digits(1, 16),
                    Some(b'0'..=b'7') => self.digits(0, 8),
                    Some(other) => other,
                    None => return Err("a string without an end".into()),
                },
                Some(byte) => byte,
                None => {
                    self.at = self.text.len();
                    return Err("a string without an end".into());
                }
            };
            bytes.push(byte);
        }
        self.at += 1;
        Ok(bytes)
    }

    /// Returns the byte of a numeric escape whose digits start `after` bytes from here; stops at
    /// the last digit.
    fn digits(&mut self, after: usize, base: u32) -> u8 {
        let most = if base == 8 { 3 } else { 2 };
        let digits = self.rest().iter().skip(after).take(most);
        let values = digits.map_while(|b| char::from(*b).to_digit(base));
        let (mut value, mut count) = (0, 0);
        for digit in values {
            value = value * base + digit;
            count += 1;
        }
        self.at += (after + count).saturating_sub(1);
        value as u8
    }

    /// Returns the current position, in bytes.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Token> {
        let mut tokens = Tokens::new(text.as_bytes());
        let mut found = Vec::new();
        loop {
            match tokens.next().unwrap() {
                (_, Token::End) => return found,
                (_, token) => found.push(token),
            }
        }
    }

    #[test]
    fn every_kind_of_token_is_found() {
        let text =
            "/* a */ /*/ a */ b := 0x1F; // c\n \"d\\\"\\n\\x41\\101\" 'e' 010 12UL ... a.b <x>";
        let word = |w: &str| Token::Word(w.into());
        assert_eq!(
            all(text),
            [
                word("b"),
                Token::Mark(":="),
                Token::Number(31),
                Token::Mark(";"),
                Token::Text("d\"\nAA".into()),
                Token::Number(101),
                Token::Number(8),
                Token::Number(12),
                Token::Mark("..."),
                word("a"),
                Token::Mark("."),
                word("b"),
                Token::Mark("<"),
                word("x"),
                Token::Mark(">"),
            ]
        );
    }

    #[test]
    fn an_unterminated_or_too_large_token_is_refused() {
        for text in ["/* a", "\"a", "\"a\\", "/*/", "'a", "99999999999999999999"] {
            assert!(Tokens::new(text.as_bytes()).next().is_err(), "{text}");
        }
    }
}
