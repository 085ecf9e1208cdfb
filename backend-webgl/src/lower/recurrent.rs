//! Recurrences along the rows: convolutions and scans, whose states are rewritten.

use super::Lowering;
use crate::kernel::{Draw, Kernel, Source, Target};
use backend_api::op::GatedDeltaNet;

/// Rows of a scan whose results are drawn from one state: each goes through those before it once more.
const SCAN_ROWS: usize = 16;

/// Columns of an operand that a draw reads: its sampler, the prefix of its parameters, the operand, and the first of them.
type View = (&'static str, &'static str, usize, usize);

impl Lowering<'_> {
    /// The state's next rows are made beside it and copied, since no draw reads what it writes to.
    pub(super) fn short_conv(&self) -> Result<Kernel, String> {
        let (state, x, kernel) = (self.input(0)?, self.input(1)?, self.input(2)?);
        let common =
            |draw: Draw| draw.int("taps", kernel.shape.cols()).input("src_state", 0, state).input("src_x", 1, x);
        let to = self.dense(state);
        let sums = common(self.draw("short_conv")?).input("src_kernel", 2, kernel);
        let next = common(Draw::new("short_conv", Target::Scratch(0), &to)).define("STATE", "");
        let copy = Draw::new("slice", Target::Output(1), &to).int("start", 0).int("x_cols", to.cols);
        let draws = vec![sums, next.int("x_rows", x.shape.dim(0)), copy.scratch("src_x", 0)];
        Ok(Kernel { draws, scratch: vec![to.texels()] })
    }

    /// Binds the columns that are read of an operand.
    fn view(&self, draw: Draw, (sampler, name, at, start): View) -> Result<Draw, String> {
        let tensor = self.input(at)?;
        let draw = draw.input(sampler, at, tensor).int(format!("{name}_cols"), tensor.shape.cols());
        Ok(draw.int(format!("{name}_start"), start))
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
        let copy = Draw::new("slice", Target::Output(1), &state).int("start", 0).int("x_cols", state.cols);
        draws.push(copy.source("src_x", from));
        Ok(Kernel { draws, scratch: vec![state.texels(); if rows > part { 2 } else { 1 }] })
    }

    pub(super) fn ssm_scan(&self) -> Result<Kernel, String> {
        let [x, a, b] = [self.input(1)?, self.input(3)?, self.input(4)?];
        let (d, n, heads) = (x.shape.cols(), self.input(0)?.shape.cols(), a.shape.dim(0));
        let common = |draw: Draw| {
            let draw = draw.int("head_dim", d / heads).int("group_heads", heads / (b.shape.cols() / n));
            let draw = draw.input("src_a", 3, a).int("decays", a.shape.cols());
            let draw = self.view(draw, ("src_x", "x", 1, 0))?;
            self.view(self.view(draw, ("src_dt", "dt", 2, 0))?, ("src_b", "b", 4, 0))
        };
        let results = |draw: Draw| {
            let draw = self.view(common(draw)?, ("src_c", "c", 5, 0))?;
            Ok(draw.int("n", n).int("heads", heads).input("src_skip", 6, self.input(6)?))
        };
        let rows = x.shape.dim(0);
        self.walk("ssm_scan", [rows, SCAN_ROWS], results, |draw| Ok(common(draw)?.int("x_rows", rows)))
    }

    pub(super) fn gated_delta_net(&self, op: &GatedDeltaNet) -> Result<Kernel, String> {
        let (heads, heads_k) = GatedDeltaNet::heads(self.inputs);
        let [v, g, beta] = [self.input(3)?, self.input(4)?, self.input(5)?];
        let dk = self.input(0)?.shape.cols();
        let common = |draw: Draw| {
            let draw = draw.define_if(op.grouped, "GROUPED").define_if(g.shape.cols() > heads, "COLUMN_GATES");
            let draw = draw.int("heads", heads).int("heads_k", heads_k).int("dv", v.shape.cols() / heads);
            let draw = draw.input("src_g", 4, g).int("g_cols", g.shape.cols());
            self.view(draw, ("src_k", "k", 2, 0))
        };
        // What is learned of a row is as wide as its result.
        let results = |draw: Draw| {
            let draw = common(draw.and(Target::Beside(0)))?.int("dk", dk).float("scale", 1.0 / (dk as f32).sqrt());
            let draw = self.view(self.view(draw, ("src_q", "q", 1, 0))?, ("src_v", "v", 3, 0))?;
            Ok(draw.input("src_beta", 5, beta))
        };
        let states = |draw| Ok(common(draw)?.source("src_learned", Source::Beside(0)));
        self.walk("gated_delta_net", [v.shape.dim(0), 1], results, states)
    }
}
