//! The tokens of GML: words, texts and brackets.

use crate::topology::TopologyError;

/// One token of the text.
pub(super) enum Token<'t> {
    /// A key or a number.
    Word(&'t str),
    /// The inside of a text in quotes, with its character references.
    Quoted(&'t str),
    /// `[`
    Open,
    /// `]`
    Close,
}

/// The tokens of a text, in order; `#` starts a comment.
pub(super) struct GmlTokens<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> GmlTokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// The line of the last token, from 1.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// An error at the line of the last token.
    pub(super) fn error(&self, message: impl Into<String>) -> TopologyError {
        TopologyError::Gml { line: self.line, message: message.into() }
    }

    /// The next token; `None` at the end of the text.
    pub(super) fn next(&mut self) -> Result<Option<Token<'t>>, TopologyError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if !self.rest.starts_with('#') {
                break;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
        let token = match self.rest.chars().next() {
            None => return Ok(None),
            Some('[') => {
                self.take(1);
                Token::Open
            }
            Some(']') => {
                self.take(1);
                Token::Close
            }
            Some('"') => {
                let end = self.rest[1..].find('"');
                let length = end.ok_or_else(|| self.error("the text in quotes does not end"))?;
                let quoted = self.take(length + 2);
                Token::Quoted(&quoted[1..=length])
            }
            Some(_) => {
                let is_end = |sign: char| sign.is_whitespace() || matches!(sign, '[' | ']' | '"');
                Token::Word(self.take(self.rest.find(is_end).unwrap_or(self.rest.len())))
            }
        };
        Ok(Some(token))
    }

    /// Takes the next `length` bytes off the text.
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        self.rest = rest;
        taken
    }
}
