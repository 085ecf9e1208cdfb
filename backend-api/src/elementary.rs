//! Elementary functions, each written once: they run in f64 as the reference, in f32 on the CPU, and are printed as text for
//! shaders, whose own functions differ between drivers.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::rc::Rc;

/// Operations that functions of numbers are made of.
///
/// The provided functions avoid overflow on the way to a finite result, keep NaN, and in f32 have errors far below
/// the tolerance of any operator.
pub trait Scalar:
    Clone + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// A constant.
    fn number(value: f64) -> Self;
    /// e^x.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Largest integer not above it.
    fn floor(self) -> Self;
    /// Smallest integer not below it.
    fn ceil(self) -> Self;
    /// Nearest integer towards zero.
    fn trunc(self) -> Self;
    /// The smaller of two.
    fn min(self, other: Self) -> Self;
    /// The larger of two.
    fn max(self, other: Self) -> Self;
    /// `then` where it is above a bound, else `otherwise`.
    fn above(self, bound: Self, then: Self, otherwise: Self) -> Self;

    /// It, brought between two bounds.
    #[inline(always)]
    fn clamp(self, lo: f64, hi: f64) -> Self {
        self.max(Self::number(lo)).min(Self::number(hi))
    }

    /// A polynomial, by its coefficients from the highest power down (Horner).
    #[inline(always)]
    fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut each = coefficients.iter().map(|c| Self::number(*c));
        let first = each.next().unwrap_or(Self::number(0.0));
        each.fold(first, |sum, c| sum * self.clone() + c)
    }

    /// 1 above zero, -1 below it, 0 at it.
    #[inline(always)]
    fn sign(self) -> Self {
        let [zero, one] = [0.0, 1.0].map(Self::number);
        let below = zero.clone().above(self.clone(), -one.clone(), zero.clone());
        self.above(zero, one, below)
    }

    /// `1 / (1 + exp(-x))`.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        let one = Self::number(1.0);
        let e = (-self.clone().abs()).exp();
        self.above(Self::number(0.0), one.clone(), e.clone()) / (one + e)
    }

    /// Hyperbolic tangent. Near zero, where the quotient loses digits, it is Maclaurin's series.
    #[inline(always)]
    fn tanh(self) -> Self {
        let (one, zero) = (Self::number(1.0), Self::number(0.0));
        let (size, square) = (self.clone().abs(), self.clone() * self.clone());
        let e = (Self::number(-2.0) * size.clone()).exp();
        let far = (one.clone() - e.clone()) / (one + e);
        let far = self.clone().above(zero, far.clone(), -far);
        let near = self * square.polynomial(&[-17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0]);
        size.above(Self::number(0.1), far, near)
    }

    /// The error function.
    ///
    /// *Source*: Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26, whose error is below 1.5e-7; near zero
    /// Maclaurin's series has the smaller relative error.
    #[inline(always)]
    fn erf(self) -> Self {
        const FAR: [f64; 5] = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
        const NEAR: [f64; 5] = [1.0 / 216.0, -1.0 / 42.0, 0.1, -1.0 / 3.0, 1.0];
        let (one, zero) = (Self::number(1.0), Self::number(0.0));
        let (size, square) = (self.clone().abs(), self.clone() * self.clone());
        let t = one.clone() / (one.clone() + Self::number(0.3275911) * size.clone());
        let far = one - t.clone() * t.polynomial(&FAR) * (-square.clone()).exp();
        let far = self.clone().above(zero, far.clone(), -far);
        let near = self * Self::number(std::f64::consts::FRAC_2_SQRT_PI) * square.polynomial(&NEAR);
        size.above(Self::number(0.5), far, near)
    }

    /// `e^x - 1`. Near zero, where the difference loses digits, it is Maclaurin's series.
    #[inline(always)]
    fn expm1(self) -> Self {
        const NEAR: [f64; 8] = [1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0];
        let far = self.clone().exp() - Self::number(1.0);
        self.clone().abs().above(Self::number(0.5), far, self.clone() * self.polynomial(&NEAR))
    }

    /// `ln(1 + x)`.
    #[inline(always)]
    fn log1p(self) -> Self {
        (Self::number(1.0) + self).log()
    }

    /// Sine of radians.
    fn sin(self) -> Self {
        circular(self, 0.0)
    }

    /// Cosine of radians.
    fn cos(self) -> Self {
        circular(self, 1.0)
    }
}

/// Sine of x plus quarter turns: a multiple of pi / 2 is taken off in three parts, and two short polynomials do the rest.
///
/// *Source*: Cody and Waite, "Software Manual for the Elementary Functions", 1980; polynomials of Cephes' `sinf`.
fn circular<T: Scalar>(x: T, quarters: f64) -> T {
    const HALF_PI: [f64; 3] = [1.5703125, 4.837512969970703e-4, 7.549789954891882e-8];
    let turns = (x.clone() * T::number(std::f64::consts::FRAC_2_PI) + T::number(0.5)).floor();
    let r = HALF_PI.iter().fold(x, |r, part| r - turns.clone() * T::number(*part));
    let z = r.clone() * r.clone();
    let sine = r.clone() + r * z.clone() * z.clone().polynomial(&[-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]);
    let cosine = [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1.0];
    let cosine = z.polynomial(&cosine);
    // What is left of n after multiples of m.
    let rest = |n: T, m: f64| n.clone() - T::number(m) * (n * T::number(1.0 / m)).floor();
    let quadrant = rest(turns + T::number(quarters), 4.0);
    let value = rest(quadrant.clone(), 2.0).above(T::number(0.5), cosine, sine);
    quadrant.above(T::number(1.5), -value.clone(), value)
}

/// The CPU's fast path.
impl Scalar for f32 {
    fn number(value: f64) -> f32 {
        value as f32
    }

    /// 0 below, and the largest powers above, what f32 holds in normal numbers. It is several times faster than that of the
    /// standard library, since it can run in lanes.
    ///
    /// *Source*: Cody and Waite: a multiple of ln 2, in two parts, is taken off; the rest is at most ln(2) / 2, where Taylor's
    /// series is short.
    #[inline(always)]
    fn exp(self) -> f32 {
        /// Added to a number below 2^22, it leaves the nearest integer in the lowest bits.
        const SHIFT: f32 = 12_582_912.0;
        const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
        let x = if self < -87.0 { -87.0 } else { self };
        let x = if x > 88.0 { 88.0 } else { x };
        let shifted = x * std::f32::consts::LOG2_E + SHIFT;
        let n = shifted - SHIFT;
        let r = (x - n * LN2[0]) - n * LN2[1];
        let p = 1.0 / 720.0 + r * (1.0 / 5040.0);
        let p = 1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * p));
        let p = 1.0 + r * (1.0 + r * (0.5 + r * p));
        let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1f32.to_bits()));
        if x.is_nan() { x } else { p * power }
    }

    fn log(self) -> f32 {
        self.ln()
    }

    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }

    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }

    #[inline(always)]
    fn floor(self) -> f32 {
        f32::floor(self)
    }

    #[inline(always)]
    fn ceil(self) -> f32 {
        f32::ceil(self)
    }

    #[inline(always)]
    fn trunc(self) -> f32 {
        f32::trunc(self)
    }

    #[inline(always)]
    fn min(self, other: f32) -> f32 {
        f32::min(self, other)
    }

    #[inline(always)]
    fn max(self, other: f32) -> f32 {
        f32::max(self, other)
    }

    #[inline(always)]
    fn above(self, bound: f32, then: f32, otherwise: f32) -> f32 {
        if self > bound { then } else { otherwise }
    }
}

/// The reference, with the exact functions of the mathematical library.
impl Scalar for f64 {
    fn number(value: f64) -> f64 {
        value
    }

    fn exp(self) -> f64 {
        f64::exp(self)
    }

    fn log(self) -> f64 {
        self.ln()
    }

    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }

    fn abs(self) -> f64 {
        f64::abs(self)
    }

    fn floor(self) -> f64 {
        f64::floor(self)
    }

    fn ceil(self) -> f64 {
        f64::ceil(self)
    }

    fn trunc(self) -> f64 {
        f64::trunc(self)
    }

    fn min(self, other: f64) -> f64 {
        f64::min(self, other)
    }

    fn max(self, other: f64) -> f64 {
        f64::max(self, other)
    }

    fn above(self, bound: f64, then: f64, otherwise: f64) -> f64 {
        if self > bound { then } else { otherwise }
    }

    fn tanh(self) -> f64 {
        f64::tanh(self)
    }

    fn erf(self) -> f64 {
        libm::erf(self)
    }

    fn expm1(self) -> f64 {
        f64::exp_m1(self)
    }

    fn log1p(self) -> f64 {
        f64::ln_1p(self)
    }

    fn sin(self) -> f64 {
        f64::sin(self)
    }

    fn cos(self) -> f64 {
        f64::cos(self)
    }
}

/// An expression, to be printed.
#[derive(Debug, Clone)]
pub struct Expr(Rc<Node>);

#[derive(Debug)]
enum Node {
    Name(String),
    Number(f64),
    Operator(char, [Expr; 2]),
    Call(&'static str, Vec<Expr>),
    /// Where the first is above the second it is the third, else the fourth.
    Above([Expr; 4]),
}

/// A shading language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Functions of one number.
    Wgsl,
    /// Functions of four numbers at a time, in GLSL ES 3.00.
    Glsl,
}

impl Expr {
    /// A value that a shader has under a name. In GLSL it is a vector of four.
    pub fn name(name: impl Into<String>) -> Expr {
        Expr(Rc::new(Node::Name(name.into())))
    }

    fn operands(&self) -> &[Expr] {
        match &*self.0 {
            Node::Name(_) | Node::Number(_) => &[],
            Node::Operator(_, operands) => operands,
            Node::Call(_, operands) => operands,
            Node::Above(operands) => operands,
        }
    }

    fn call(name: &'static str, operands: Vec<Expr>) -> Expr {
        Expr(Rc::new(Node::Call(name, operands)))
    }
}

macro_rules! operators {
    ($($of:ident $method:ident $sign:literal),+) => {$(
        impl $of for Expr {
            type Output = Expr;

            fn $method(self, other: Expr) -> Expr {
                Expr(Rc::new(Node::Operator($sign, [self, other])))
            }
        }
    )+};
}

operators!(Add add '+', Sub sub '-', Mul mul '*', Div div '/');

impl Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        Expr::call("-", vec![self])
    }
}

macro_rules! calls {
    ($($name:ident($($operand:ident),*)),+) => {$(
        fn $name(self, $($operand: Expr),*) -> Expr {
            Expr::call(stringify!($name), vec![self, $($operand),*])
        }
    )+};
}

impl Scalar for Expr {
    fn number(value: f64) -> Expr {
        Expr(Rc::new(Node::Number(value)))
    }

    calls!(exp(), log(), sqrt(), abs(), floor(), ceil(), trunc(), min(other), max(other));

    fn above(self, bound: Expr, then: Expr, otherwise: Expr) -> Expr {
        Expr(Rc::new(Node::Above([self, bound, then, otherwise])))
    }
}

impl Language {
    /// A parameter of the kernel, by its name.
    pub fn parameter(self, name: &str) -> Expr {
        Expr::name(match self {
            Language::Wgsl => format!("p.{name}"),
            Language::Glsl => format!("vec4({name})"),
        })
    }

    /// The function that gives an expression of its parameters. What the expression has several times is computed once.
    pub fn function(self, name: &str, parameters: &[&str], expression: &Expr) -> String {
        let parameter = |name: &&str| match self {
            Language::Wgsl => format!("{name}: f32"),
            Language::Glsl => format!("vec4 {name}"),
        };
        let parameters = parameters.iter().map(parameter).collect::<Vec<_>>().join(", ");
        let (text, result) = self.lines(expression);
        match self {
            Language::Wgsl => format!("fn {name}({parameters}) -> f32 {{\n{text}    return {result};\n}}\n"),
            Language::Glsl => format!("vec4 {name}({parameters}) {{\n{text}    return {result};\n}}\n"),
        }
    }

    /// The lines that compute what an expression has several times, and the rest of it.
    pub fn lines(self, expression: &Expr) -> (String, String) {
        let (mut uses, mut text) = (HashMap::new(), String::new());
        count(expression, &mut uses);
        let result = self.print(expression, &mut Printer { uses, named: HashMap::new(), text: &mut text });
        (text, result)
    }

    fn print(self, expression: &Expr, to: &mut Printer<'_>) -> String {
        let key = Rc::as_ptr(&expression.0);
        if let Some(name) = to.named.get(&key) {
            return name.clone();
        }
        let operands: Vec<String> = expression.operands().iter().map(|operand| self.print(operand, to)).collect();
        let all = operands.join(", ");
        let printed = match (&*expression.0, operands.as_slice(), self) {
            (Node::Number(value), ..) => match self {
                Language::Wgsl => format!("{:?}", *value as f32),
                Language::Glsl => format!("vec4({:?})", *value as f32),
            },
            (Node::Name(name), ..) => name.clone(),
            (Node::Operator(sign, _), [left, right], _) => format!("({left} {sign} {right})"),
            (Node::Above(_), [x, bound, then, otherwise], Language::Wgsl) => {
                format!("select({otherwise}, {then}, {x} > {bound})")
            }
            (Node::Above(_), [x, bound, then, otherwise], Language::Glsl) => {
                format!("mix({otherwise}, {then}, greaterThan({x}, {bound}))")
            }
            (Node::Call(name, _), ..) => format!("{name}({all})"),
            (Node::Operator(..) | Node::Above(_), ..) => all,
        };
        if expression.operands().is_empty() || to.uses.get(&key).is_none_or(|uses| *uses < 2) {
            return printed;
        }
        let name = format!("v{}", to.named.len());
        let kind = if self == Language::Wgsl { "let" } else { "vec4" };
        // Writing to a string cannot fail.
        let _ = writeln!(to.text, "    {kind} {name} = {printed};");
        to.named.insert(key, name.clone());
        name
    }
}

/// The state of a print: which parts are used several times, which of them have names by now, and their lines.
struct Printer<'t> {
    uses: HashMap<*const Node, usize>,
    named: HashMap<*const Node, String>,
    text: &'t mut String,
}

/// Counts how often each part of an expression is used.
fn count(expression: &Expr, uses: &mut HashMap<*const Node, usize>) {
    let seen = uses.entry(Rc::as_ptr(&expression.0)).or_insert(0);
    *seen += 1;
    if *seen == 1 {
        expression.operands().iter().for_each(|operand| count(operand, uses));
    }
}
