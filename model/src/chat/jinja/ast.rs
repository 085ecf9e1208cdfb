//! A template as it was parsed. Chains are lists, so that only real nesting is deep.

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
    /// Conditions with what is done under them, and what is done otherwise.
    If(Vec<(Expr, Block)>, Block),
    For(Box<For>),
    Set(Target, Expr),
    /// A block whose text, filtered, becomes a variable.
    Capture(Target, Vec<Step>, Block),
    Filter(Vec<Step>, Block),
    With(Vec<(Target, Expr)>, Block),
    /// By its number among the macros.
    Macro(usize),
    /// An expression of which nothing is shown.
    Do(Expr),
    /// Marks for training what an assistant says.
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

/// What is assigned to.
#[derive(Debug)]
pub(super) enum Target {
    Name(Name),
    /// A field of a namespace.
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
    /// Operators of one precedence, applied from the left.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    /// True where each neighbouring pair compares so, as in `0 < a < 9`.
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    /// `a if condition else b`.
    Choice(Box<(Expr, Expr, Option<Expr>)>),
    /// What is done to a value, one step after the other.
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
    /// With whether it is negated.
    Test(Name, Arguments, bool),
}

#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub positional: Vec<Expr>,
    /// A list after `*`, whose elements are positional arguments too.
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
