//! Recurrences along the rows: convolutions and scans, whose states are rewritten.

use super::Lowering;
use crate::kernel::{Draw, Kernel, Source, Target};
use backend_api::form::{Columns, Conv, Delta, Scan, ScanPlaces};
use backend_api::op::{GatedDeltaNet, IDENTITY, UnaryKind};

/// Rows of a scan whose results are drawn from one state: each goes through those before it once more.
const SCAN_ROWS: usize = 16;

/// Columns that a draw reads: their sampler, and the prefix of their parameters.
type View = (&'static str, &'static str, Columns);

impl Lowering<'_> {
    pub(super) fn short_conv(&self) -> Result<Kernel, String> {
        self.conv(&Conv::plain(self.input(1)?.shape.cols()))
    }

    /// The state's next rows are made beside it and copied, since no draw reads what it writes to.
    pub(super) fn conv(&self, op: &Conv) -> Result<Kernel, String> {
        let (kernel_at, bias) = op.places(self.inputs.len());
        let (state, kernel) = (self.input(0)?, self.input(kernel_at)?);
        let common = |draw: Draw| {
            let draw = draw.int("taps", kernel.shape.cols()).input("src_state", 0, state);
            let draw = self.view(draw, ("src_x", "x", op.x))?;
            match op.gate {
                Some(gate) => self.view(draw.define("GATE", ""), ("src_gate", "gate", gate)),
                None => Ok(draw),
            }
        };
        let to = self.dense(state);
        let sums = common(self.draw("short_conv")?)?.input("src_kernel", kernel_at, kernel);
        let mut sums = self.biased(sums, bias)?.define("ACT", op.activation.map_or(IDENTITY, UnaryKind::function));
        if let Some(gate) = op.gate_out {
            sums = self.view(sums.define("GATE_OUT", ""), ("src_gate_out", "gate_out", gate))?;
        }
        let next = common(Draw::new("short_conv", Target::Scratch(0), &to))?.define("STATE", "");
        let copy = Draw::new("copy", Target::Output(1), &to).int("x_cols", to.cols);
        let rows = self.output(0)?.shape.dim(0);
        let draws = vec![sums, next.int("x_rows", rows), copy.scratch("src_x", 0)];
        Ok(Kernel { draws, scratch: vec![to.texels()] })
    }

    /// Binds a bias, if there is one.
    fn biased(&self, draw: Draw, bias: Option<usize>) -> Result<Draw, String> {
        let Some(at) = bias else { return Ok(draw) };
        Ok(draw.define("BIAS", "").input("src_bias", at, self.input(at)?))
    }

    /// Binds columns of an operand.
    pub(super) fn view(&self, draw: Draw, (sampler, name, columns): View) -> Result<Draw, String> {
        let tensor = self.input(columns.of)?;
        let draw = draw.input(sampler, columns.of, tensor).int(format!("{name}_cols"), tensor.shape.cols());
        Ok(draw.int(format!("{name}_start"), columns.start))
    }

    /// Walks down the rows in parts: `results` draws those of a part from the state before it, `states` the state after it.
    /// States are made in turn in two textures beside the state, and the last is copied, since no draw reads what it writes
    /// to.
    fn walk(
        &self,
        shader: &'static str,
        [rows, part]: [usize; 2],
        results: impl Fn(Draw) -> Result<Draw, String>,
        states: impl Fn(Draw) -> Result<Draw, String>,
    ) -> Result<Kernel, String> {
        let (out, state) = (self.dense(self.output(0)?), self.dense(self.output(1)?));
        let bounds = |draw: Draw, first: usize| {
            let end = (first + part).min(rows);
            draw.int("part_first", first).int("part_end", end)
        };
        let (mut draws, mut from) = (Vec::new(), Source::Input(0));
        for (turn, first) in (0..rows).step_by(part).enumerate() {
            let to = turn % 2;
            let draw = self.draw(shader)?.part(&out, first, (first + part).min(rows));
            draws.push(results(bounds(draw, first).source("src_state", from))?);
            let draw = Draw::new(shader, Target::Scratch(to), &state).define("STATE", "");
            draws.push(states(bounds(draw, first).source("src_state", from))?);
            from = Source::Scratch(to);
        }
        let copy = Draw::new("copy", Target::Output(1), &state).int("x_cols", state.cols);
        draws.push(copy.source("src_x", from));
        Ok(Kernel { draws, scratch: vec![state.texels(); if rows > part { 2 } else { 1 }] })
    }

    pub(super) fn ssm_scan(&self) -> Result<Kernel, String> {
        let [x, a, b] = [self.input(1)?, self.input(3)?, self.input(4)?];
        let (form, places) = Scan::plain([x.shape.cols(), a.shape.dim(0), b.shape.cols()]);
        self.scan(&form, places)
    }

    pub(super) fn scan(&self, op: &Scan, places: ScanPlaces) -> Result<Kernel, String> {
        let a = self.input(places.a)?;
        let (n, heads) = (self.input(0)?.shape.cols(), a.shape.dim(0));
        let common = |draw: Draw| {
            let draw = draw.int("head_dim", op.x.len / heads).int("group_heads", heads / (op.b.len / n));
            let draw = draw.input("src_a", places.a, a).int("decays", a.shape.cols()).int("heads", heads);
            let draw = self.view(self.biased(draw, places.bias)?, ("src_x", "x", op.x))?;
            self.view(self.view(draw, ("src_dt", "dt", op.dt))?, ("src_b", "b", op.b))
        };
        let results = |draw: Draw| {
            let draw = self.view(common(draw)?, ("src_c", "c", op.c))?.int("n", n);
            let draw = draw.input("src_skip", places.skip, self.input(places.skip)?);
            let Some((kind, gate)) = op.gate else { return Ok(draw) };
            self.view(draw.define("GATE", "").define("ACT", kind.activation().function()), ("src_z", "z", gate))
        };
        let rows = self.output(0)?.shape.dim(0);
        self.walk("ssm_scan", [rows, SCAN_ROWS], results, common)
    }

    pub(super) fn gated_delta_net(&self, op: &GatedDeltaNet) -> Result<Kernel, String> {
        let width = |i: usize| self.inputs.get(i).map_or(0, |tensor| tensor.shape.cols());
        self.delta(&Delta::plain(*op, [1, 2, 3, 4, 5].map(width)))
    }

    pub(super) fn delta(&self, op: &Delta) -> Result<Kernel, String> {
        let (dk, heads) = (self.input(0)?.shape.cols(), op.beta.len);
        let common = |draw: Draw| -> Result<Draw, String> {
            let draw = draw.define_if(op.net.grouped, "GROUPED").define_if(op.g.len > heads, "COLUMN_GATES");
            let draw = draw.int("heads", heads).int("heads_k", op.q.len / dk).int("dv", op.v.len / heads);
            let draw = self.view(self.view(draw, ("src_g", "g", op.g))?, ("src_k", "k", op.k))?;
            let Some([bias, decays]) = op.vectors(self.inputs.len()) else { return Ok(draw) };
            let draw = draw.define("GATES", "").input("src_bias", bias, self.input(bias)?);
            Ok(draw.input("src_decays", decays, self.input(decays)?))
        };
        // What is learned of a row is as wide as its result.
        let results = |draw: Draw| {
            let draw = common(draw.and(Target::Beside(0)))?.int("dk", dk).float("scale", 1.0 / (dk as f32).sqrt());
            let draw = self.view(self.view(draw, ("src_q", "q", op.q))?, ("src_v", "v", op.v))?;
            self.view(draw, ("src_beta", "beta", op.beta))
        };
        let states = |draw| Ok(common(draw)?.source("src_learned", Source::Beside(0)));
        self.walk("gated_delta_net", [self.output(0)?.shape.dim(0), 1], results, states)
    }
}
