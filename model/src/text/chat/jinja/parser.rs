//! Parser of statements.

use std::sync::Arc;

use super::Fault;
use super::ast::{Block, Expr, For, Kind, Macro, Name, Statement, Step, Target};
use super::lexer::{Placed, Token};

/// Deepest nesting of blocks and expressions together. The parser is recursive.
const MAX_NESTING: usize = 64;

pub(super) struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    nesting: usize,
    loops: usize,
    pub(super) macros: Vec<Macro>,
}

impl Parser {
    pub fn new(tokens: Vec<Placed>) -> Parser {
        Parser { tokens, at: 0, nesting: 0, loops: 0, macros: Vec::new() }
    }

    /// Parses the whole template.
    pub fn template(&mut self) -> Result<Block, Fault> {
        Ok(self.block(&[])?.0)
    }

    /// Returns the line of the next token.
    pub fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line)
    }

    /// Runs `what` one level deeper.
    pub(super) fn nested<T>(&mut self, what: impl FnOnce(&mut Parser) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.nesting == MAX_NESTING {
            return Err(Fault::new(format!("it nests more than {MAX_NESTING} deep")));
        }
        self.nesting += 1;
        let result = what(self);
        self.nesting -= 1;
        result
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    pub(super) fn is(&self, operator: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(found)) if *found == operator)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if **found == *word)
    }

    /// Takes an operator if it is next.
    pub(super) fn accept(&mut self, operator: &str) -> bool {
        let found = self.is(operator);
        self.at += usize::from(found);
        found
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, operator: &str) -> Result<(), Fault> {
        if self.accept(operator) { Ok(()) } else { Err(self.unexpected(&format!("\"{operator}\""))) }
    }

    pub(super) fn name(&mut self) -> Result<Name, Fault> {
        match self.next() {
            Some(Token::Name(name)) => Ok(name),
            _ => {
                self.at -= 1;
                Err(self.unexpected("a name"))
            }
        }
    }

    pub(super) fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.peek() {
            None => "the end of the template".into(),
            Some(Token::Text(_)) => "text".into(),
            Some(Token::Output) => "{{".into(),
            Some(Token::OutputEnd) => "}}".into(),
            Some(Token::Block) => "{%".into(),
            Some(Token::BlockEnd) => "%}".into(),
            Some(Token::Name(name)) => format!("\"{name}\""),
            Some(Token::Str(_)) => "a string".into(),
            Some(Token::Int(_) | Token::Float(_)) => "a number".into(),
            Some(Token::Operator(operator)) => format!("\"{operator}\""),
        };
        Fault::new(format!("{expected} is expected, but {found} is found"))
    }

    fn end_of_tag(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(Token::BlockEnd) => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.unexpected("%}")),
        }
    }

    /// Parses statements up to a tag that begins with one of `ends`. The word is consumed, the rest of the tag is not.
    fn block(&mut self, ends: &[&'static str]) -> Result<(Block, &'static str), Fault> {
        self.nested(|parser| parser.statements(ends))
    }

    fn statements(&mut self, ends: &[&'static str]) -> Result<(Block, &'static str), Fault> {
        let mut block = Vec::new();
        loop {
            let line = self.line();
            let kind = match self.next() {
                None if ends.is_empty() => return Ok((block, "")),
                None => return Err(Fault::new(format!("a block lacks its \"{}\"", ends[ends.len() - 1]))),
                Some(Token::Text(text)) => Kind::Text(text),
                Some(Token::Output) => {
                    let shown = self.tuple()?;
                    match self.next() {
                        Some(Token::OutputEnd) => Kind::Output(shown),
                        _ => {
                            self.at -= 1;
                            return Err(self.unexpected("}}"));
                        }
                    }
                }
                Some(_) => {
                    let word = self.name()?;
                    if let Some(end) = ends.iter().find(|end| ***end == *word) {
                        return Ok((block, end));
                    }
                    self.statement(&word)?
                }
            };
            block.push(Statement { line, kind });
        }
    }

    /// Parses a block up to its end tag, in which nothing else may stand.
    fn body(&mut self, end: &'static str) -> Result<Block, Fault> {
        self.end_of_tag()?;
        let (block, _) = self.block(&[end])?;
        // Some templates repeat the name of the macro.
        if end == "endmacro" && matches!(self.peek(), Some(Token::Name(_))) {
            self.at += 1;
        }
        self.end_of_tag()?;
        Ok(block)
    }

    fn statement(&mut self, word: &str) -> Result<Kind, Fault> {
        let kind = match word {
            "if" => return self.conditions(),
            "for" => return self.repeat(),
            "set" => return self.set(),
            "macro" => return self.macro_definition(),
            "filter" => {
                let filters = self.filters(true)?;
                return Ok(Kind::Filter(filters, self.body("endfilter")?));
            }
            "with" => {
                let mut variables = Vec::new();
                while !matches!(self.peek(), Some(Token::BlockEnd)) {
                    let target = Target::Name(self.name()?);
                    self.expect("=")?;
                    variables.push((target, self.expr()?));
                    if !self.accept(",") {
                        break;
                    }
                }
                return Ok(Kind::With(variables, self.body("endwith")?));
            }
            "generation" => return Ok(Kind::Generation(self.body("endgeneration")?)),
            "do" => Kind::Do(self.tuple()?),
            "break" | "continue" if self.loops == 0 => {
                return Err(Fault::new(format!("\"{word}\" stands outside of a loop")));
            }
            "break" => Kind::Break,
            "continue" => Kind::Continue,
            other => return Err(Fault::new(format!("the block \"{other}\" is not supported"))),
        };
        self.end_of_tag()?;
        Ok(kind)
    }

    fn conditions(&mut self) -> Result<Kind, Fault> {
        let mut branches = Vec::new();
        loop {
            let condition = self.tuple()?;
            self.end_of_tag()?;
            let (block, end) = self.block(&["elif", "else", "endif"])?;
            branches.push((condition, block));
            match end {
                "elif" => {}
                "else" => return Ok(Kind::If(branches, self.body("endif")?)),
                _ => {
                    self.end_of_tag()?;
                    return Ok(Kind::If(branches, Vec::new()));
                }
            }
        }
    }

    fn repeat(&mut self) -> Result<Kind, Fault> {
        let target = self.targets()?;
        if !self.accept_word("in") {
            return Err(self.unexpected("\"in\""));
        }
        let items = self.items()?;
        let condition = if self.accept_word("if") { Some(self.expr()?) } else { None };
        if self.is_word("recursive") {
            return Err(Fault::new("recursive loops are not supported"));
        }
        self.end_of_tag()?;
        self.loops += 1;
        let body = self.block(&["else", "endfor"]);
        self.loops -= 1;
        let (body, end) = body?;
        let otherwise = if end == "else" {
            self.body("endfor")?
        } else {
            self.end_of_tag()?;
            Vec::new()
        };
        Ok(Kind::For(Box::new(For { target, items, condition, body, otherwise })))
    }

    fn set(&mut self) -> Result<Kind, Fault> {
        let target = self.targets()?;
        if self.accept("=") {
            let value = self.tuple()?;
            self.end_of_tag()?;
            return Ok(Kind::Set(target, value));
        }
        let filters = self.filters(false)?;
        Ok(Kind::Capture(target, filters, self.body("endset")?))
    }

    /// Parses `a|b|c`. If `bare` is set, the first filter has no bar before it.
    fn filters(&mut self, bare: bool) -> Result<Vec<Step>, Fault> {
        let mut filters = Vec::new();
        if bare {
            filters.push(self.filter()?);
        }
        while self.accept("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    fn macro_definition(&mut self) -> Result<Kind, Fault> {
        let name = self.name()?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.accept(")") {
            let parameter = self.name()?;
            let default = if self.accept("=") { Some(self.expr()?) } else { None };
            parameters.push((parameter, default));
            if !self.accept(",") && !self.is(")") {
                return Err(self.unexpected("\")\""));
            }
        }
        let loops = std::mem::take(&mut self.loops);
        let body = self.body("endmacro");
        self.loops = loops;
        self.macros.push(Macro { name, parameters, body: body? });
        Ok(Kind::Macro(self.macros.len() - 1))
    }

    /// Parses one assignment target, or several separated by commas.
    fn targets(&mut self) -> Result<Target, Fault> {
        let first = self.target()?;
        if !self.is(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.accept(",") {
            all.push(self.target()?);
        }
        Ok(Target::Several(all))
    }

    fn target(&mut self) -> Result<Target, Fault> {
        if self.accept("(") {
            let inner = self.nested(Parser::targets)?;
            self.expect(")")?;
            return Ok(inner);
        }
        let name: Arc<str> = self.name()?;
        if self.accept(".") {
            return Ok(Target::Field(name, self.name()?));
        }
        Ok(Target::Name(name))
    }
}

impl Parser {
    /// Parses expressions separated by commas as a tuple; a single one stays as it is.
    pub(super) fn tuple(&mut self) -> Result<Expr, Fault> {
        let first = self.expr()?;
        self.rest_of_tuple(first, Parser::expr)
    }

    /// Parses the items of a loop: like [`Parser::tuple`], but `if` belongs to the loop.
    fn items(&mut self) -> Result<Expr, Fault> {
        let first = self.without_choice()?;
        self.rest_of_tuple(first, Parser::without_choice)
    }

    fn rest_of_tuple(&mut self, first: Expr, each: impl Fn(&mut Parser) -> Result<Expr, Fault>) -> Result<Expr, Fault> {
        if !self.is(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.accept(",") {
            if matches!(self.peek(), None | Some(Token::BlockEnd | Token::OutputEnd)) || self.is("=") || self.is(")") {
                break;
            }
            all.push(each(self)?);
        }
        Ok(Expr::Tuple(all))
    }
}
