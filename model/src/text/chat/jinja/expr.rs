//! Parser of expressions, by precedence.

use super::Fault;
use super::ast::{Arguments, Comparison, Expr, Operator, Step};
use super::lexer::Token;
use super::parser::Parser;
use super::value::Value;

/// Precedence of operators, loosest first.
const OR: u8 = 0;
const AND: u8 = 1;
const NOT: u8 = 2;
const COMPARE: u8 = 3;
/// Precedence of the loosest operators that combine two values, such as `+`.
const VALUES: u8 = 4;

/// Words that cannot begin an argument of a test.
const NO_ARGUMENT: [&str; 7] = ["and", "or", "else", "if", "in", "is", "not"];

/// Operator between two expressions.
enum Infix {
    Or,
    And,
    Compare(Comparison),
    Value(Operator),
}

impl Parser {
    /// Parses an expression. A nested expression counts as a level.
    pub(super) fn expr(&mut self) -> Result<Expr, Fault> {
        self.nested(|parser| {
            let value = parser.binary(OR)?;
            if !parser.accept_word("if") {
                return Ok(value);
            }
            let condition = parser.binary(OR)?;
            let otherwise = if parser.accept_word("else") { Some(parser.expr()?) } else { None };
            Ok(Expr::Choice(Box::new((value, condition, otherwise))))
        })
    }

    /// Parses an expression that ends before `if`.
    pub(super) fn without_choice(&mut self) -> Result<Expr, Fault> {
        self.nested(|parser| parser.binary(OR))
    }

    /// Returns the next infix operator, its precedence, and its number of tokens.
    fn infix(&self) -> Option<(Infix, u8, usize)> {
        let value = |operator, precedence| Some((Infix::Value(operator), precedence, 1));
        let compare = |comparison, length| Some((Infix::Compare(comparison), COMPARE, length));
        match self.peek()? {
            Token::Name(word) => match &**word {
                "or" => Some((Infix::Or, OR, 1)),
                "and" => Some((Infix::And, AND, 1)),
                "in" => compare(Comparison::In, 1),
                "not" if matches!(self.peek_at(1), Some(Token::Name(next)) if **next == *"in") => {
                    compare(Comparison::NotIn, 2)
                }
                _ => None,
            },
            Token::Operator(operator) => match *operator {
                "==" => compare(Comparison::Equal, 1),
                "!=" => compare(Comparison::NotEqual, 1),
                "<" => compare(Comparison::Less, 1),
                "<=" => compare(Comparison::LessOrEqual, 1),
                ">" => compare(Comparison::Greater, 1),
                ">=" => compare(Comparison::GreaterOrEqual, 1),
                "+" => value(Operator::Add, VALUES),
                "-" => value(Operator::Subtract, VALUES),
                "~" => value(Operator::Concatenate, VALUES + 1),
                "*" => value(Operator::Multiply, VALUES + 2),
                "/" => value(Operator::Divide, VALUES + 2),
                "//" => value(Operator::DivideDown, VALUES + 2),
                "%" => value(Operator::Remainder, VALUES + 2),
                "**" => value(Operator::Power, VALUES + 3),
                _ => None,
            },
            _ => None,
        }
    }

    /// Parses operators of at least this precedence.
    fn binary(&mut self, least: u8) -> Result<Expr, Fault> {
        let mut left = self.unary(least)?;
        while let Some((_, precedence, _)) = self.infix()
            && precedence >= least
        {
            left = self.chain(left, precedence)?;
        }
        Ok(left)
    }

    /// Parses a chain of operators with the same precedence.
    fn chain(&mut self, first: Expr, precedence: u8) -> Result<Expr, Fault> {
        let (mut values, mut compared, mut logical) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((infix, found, length)) = self.infix()
            && found == precedence
        {
            (0..length).for_each(|_| drop(self.next()));
            let right = self.binary(precedence + 1)?;
            match infix {
                Infix::Value(operator) => values.push((operator, right)),
                Infix::Compare(comparison) => compared.push((comparison, right)),
                Infix::Or | Infix::And => logical.push(right),
            }
        }
        Ok(match precedence {
            OR | AND => {
                logical.insert(0, first);
                if precedence == OR { Expr::Or(logical) } else { Expr::And(logical) }
            }
            COMPARE => Expr::Compare(Box::new(first), compared),
            _ => Expr::Chain(Box::new(first), values),
        })
    }

    fn unary(&mut self, least: u8) -> Result<Expr, Fault> {
        if self.is_word("not") {
            self.next();
            let inner = self.nested(|parser| parser.binary(NOT.max(least)))?;
            return Ok(Expr::Not(Box::new(inner)));
        }
        if self.is("-") || self.is("+") {
            let negative = self.is("-");
            self.next();
            let inner = self.nested(|parser| {
                let inner = if parser.is("-") || parser.is("+") { parser.unary(least)? } else { parser.primary()? };
                parser.steps(inner, false)
            })?;
            let signed = if negative { Expr::Negative(Box::new(inner)) } else { inner };
            return self.steps(signed, true);
        }
        let primary = self.primary()?;
        self.steps(primary, true)
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        match self.peek() {
            Some(Token::Str(text)) => {
                let mut value = text.to_string();
                self.next();
                // Adjacent string literals are joined, as in Python.
                while let Some(Token::Str(more)) = self.peek() {
                    value += more;
                    self.next();
                }
                Ok(Expr::Constant(Value::Str(value.into())))
            }
            Some(&Token::Int(value)) => {
                self.next();
                Ok(Expr::Constant(Value::Int(value)))
            }
            Some(&Token::Float(value)) => {
                self.next();
                Ok(Expr::Constant(Value::Float(value)))
            }
            Some(Token::Name(_)) => {
                let name = self.name()?;
                Ok(match &*name {
                    "true" | "True" => Expr::Constant(Value::Bool(true)),
                    "false" | "False" => Expr::Constant(Value::Bool(false)),
                    "none" | "None" => Expr::Constant(Value::None),
                    _ => Expr::Name(name),
                })
            }
            Some(Token::Operator("(")) => {
                self.next();
                if self.accept(")") {
                    return Ok(Expr::Tuple(Vec::new()));
                }
                let inner = self.tuple()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Operator("[")) => {
                self.next();
                let mut items = Vec::new();
                while !self.accept("]") {
                    items.push(self.expr()?);
                    if !self.accept(",") && !self.is("]") {
                        return Err(self.unexpected("\"]\""));
                    }
                }
                Ok(Expr::List(items))
            }
            Some(Token::Operator("{")) => {
                self.next();
                let mut pairs = Vec::new();
                while !self.accept("}") {
                    let key = self.expr()?;
                    self.expect(":")?;
                    pairs.push((key, self.expr()?));
                    if !self.accept(",") && !self.is("}") {
                        return Err(self.unexpected("\"}\""));
                    }
                }
                Ok(Expr::Map(pairs))
            }
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// Parses fields, subscripts and calls, and also filters and tests if `filters` is set.
    fn steps(&mut self, value: Expr, filters: bool) -> Result<Expr, Fault> {
        let mut steps = Vec::new();
        loop {
            if self.accept(".") {
                if let Some(&Token::Int(at)) = self.peek() {
                    self.next();
                    steps.push(Step::Index(Expr::Constant(Value::Int(at))));
                    continue;
                }
                let name = self.name()?;
                steps.push(if self.is("(") { Step::Method(name, self.arguments()?) } else { Step::Field(name) });
            } else if self.accept("[") {
                steps.push(self.subscript()?);
            } else if self.is("(") {
                steps.push(Step::Call(self.arguments()?));
            } else if filters && self.accept("|") {
                steps.push(self.filter()?);
            } else if filters && self.is_word("is") {
                self.next();
                steps.push(self.test()?);
            } else if steps.is_empty() {
                return Ok(value);
            } else {
                return Ok(Expr::Steps(Box::new(value), steps));
            }
        }
    }

    pub(super) fn filter(&mut self) -> Result<Step, Fault> {
        let name = self.name()?;
        let arguments = if self.is("(") { self.arguments()? } else { Arguments::default() };
        Ok(Step::Filter(name, arguments))
    }

    fn test(&mut self) -> Result<Step, Fault> {
        let negated = self.accept_word("not");
        let name = self.name()?;
        let mut arguments = Arguments::default();
        if self.is("(") {
            arguments = self.arguments()?;
        } else {
            let begins = match self.peek() {
                Some(Token::Name(word)) => !NO_ARGUMENT.contains(&&**word),
                Some(Token::Str(_) | Token::Int(_) | Token::Float(_)) => true,
                Some(Token::Operator(operator)) => matches!(*operator, "[" | "{"),
                _ => false,
            };
            if begins {
                let argument = self.nested(|parser| {
                    let primary = parser.primary()?;
                    parser.steps(primary, false)
                })?;
                arguments.positional.push(argument);
            }
        }
        Ok(Step::Test(name, arguments, negated))
    }

    /// Parses a subscript or slice after `[`.
    fn subscript(&mut self) -> Result<Step, Fault> {
        let mut bounds = [None, None, None];
        let mut at = 0;
        while !self.accept("]") {
            if self.accept(":") {
                at += 1;
                if at == bounds.len() {
                    return Err(Fault::new("a slice has more than three bounds"));
                }
            } else if bounds[at].is_none() {
                bounds[at] = Some(self.expr()?);
            } else {
                return Err(self.unexpected("\"]\""));
            }
        }
        match bounds {
            [Some(index), None, None] if at == 0 => Ok(Step::Index(index)),
            _ if at == 0 => Err(Fault::new("a subscript is empty")),
            bounds => Ok(Step::Slice(bounds)),
        }
    }

    fn arguments(&mut self) -> Result<Arguments, Fault> {
        self.expect("(")?;
        let mut arguments = Arguments::default();
        while !self.accept(")") {
            let named = matches!((self.peek(), self.peek_at(1)), (Some(Token::Name(_)), Some(Token::Operator("="))));
            if named {
                let name = self.name()?;
                self.expect("=")?;
                arguments.named.push((name, self.expr()?));
            } else if arguments.rest.is_none() && self.accept("*") {
                arguments.rest = Some(self.expr()?);
            } else {
                arguments.positional.push(self.expr()?);
            }
            if !self.accept(",") && !self.is(")") {
                return Err(self.unexpected("\")\""));
            }
        }
        Ok(arguments)
    }
}
