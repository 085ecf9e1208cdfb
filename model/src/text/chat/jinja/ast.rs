//! Syntax tree of a template. Chains of operators are lists, so only real nesting makes it deep.

use std::sync::Arc;

use super::value::Value;

pub(super) type Name = Arc<str>;
pub(super) type Block = Vec<Statement>;

#[derive(Debug)]
pub(super) struct Statement {
    pub line: u32,
    pub kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text(Arc<str>),
    Output(Expr),
    /// `if` and `elif`: conditions with their blocks, and the block of `else`.
    If(Vec<(Expr, Block)>, Block),
    For(Box<For>),
    Set(Target, Expr),
    /// `{% set x %}`: a block whose filtered text becomes a variable.
    Capture(Target, Vec<Step>, Block),
    Filter(Vec<Step>, Block),
    With(Vec<(Target, Expr)>, Block),
    /// A macro, as an index into the template's macros.
    Macro(usize),
    /// `do`: an expression whose value is not shown.
    Do(Expr),
    /// `generation`: marks an assistant's text for training. It has no effect here.
    Generation(Block),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct For {
    pub target: Target,
    pub items: Expr,
    pub condition: Option<Expr>,
    pub body: Block,
    pub otherwise: Block,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub name: Name,
    pub parameters: Vec<(Name, Option<Expr>)>,
    pub body: Block,
}

/// Target of an assignment.
#[derive(Debug)]
pub(super) enum Target {
    Name(Name),
    /// Field of a namespace.
    Field(Name, Name),
    Several(Vec<Target>),
}

#[derive(Debug)]
pub(super) enum Expr {
    Constant(Value),
    Name(Name),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// Operators of one precedence, applied from left to right.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    /// Comparisons, which are true if each neighbouring pair is, as in `0 < a < 9`.
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    /// `a if condition else b`.
    Choice(Box<(Expr, Expr, Option<Expr>)>),
    /// Steps applied to a value, one after the other.
    Steps(Box<Expr>, Vec<Step>),
}

#[derive(Debug)]
pub(super) enum Step {
    Field(Name),
    Index(Expr),
    Slice([Option<Expr>; 3]),
    Call(Arguments),
    Method(Name, Arguments),
    Filter(Name, Arguments),
    /// A test of a value; negated if the flag is set.
    Test(Name, Arguments, bool),
}

#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub positional: Vec<Expr>,
    /// List after `*`, whose elements are further positional arguments.
    pub rest: Option<Expr>,
    pub named: Vec<(Name, Expr)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    DivideDown,
    Remainder,
    Power,
    Concatenate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}
