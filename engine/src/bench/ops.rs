//! Benchmark of single operators: several are submitted, then one result is read. The shapes are those of other
//! engines' published measurements.

use backend_api::case::Fill;
use backend_api::op::{Masking, MatMul, Norm, NormKind, Op, Softmax, Unary, UnaryKind};
use backend_api::{Backend, DType, Error, Format, Graph, Kind};
use model::Host;
use serde::Serialize;

use super::Spread;
use crate::error::EngineError;
use crate::ladder::SelectOptions;
use crate::select::select;
use crate::timing;

/// Operators in a batch, by default.
pub const QUEUED: usize = 20;
/// Number of batches, unless [`ENOUGH_MS`] ends the measurement.
const BATCHES: usize = 15;
/// Least number of batches, however slow the device is.
const LEAST: usize = 3;
/// Time after which no more batches are measured.
///
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 2000.0;

/// A timed operator, with its operands other than x.
#[derive(Debug, Clone, Copy)]
enum What {
    /// Matmul with `b`, which is `[n, k]`, of this dtype.
    MatMul {
        n: usize,
        b: DType,
    },
    Softmax,
    Norm(NormKind),
    Gelu,
}

/// A row of the table.
struct Timed {
    name: &'static str,
    /// The shape of x.
    x: [usize; 2],
    what: What,
}

const PACKED: DType = DType::Packed(Format::F32);

/// Timed operators. Matmuls are `m`x`k`x`n`, once with a weight, as in models, and once with a dense operand.
const TIMED: &[Timed] = &[
    Timed { name: "mm 1x576x1536", x: [1, 576], what: What::MatMul { n: 1536, b: PACKED } },
    Timed { name: "mm 1x576x1536", x: [1, 576], what: What::MatMul { n: 1536, b: DType::F32 } },
    Timed { name: "mm 64x576x1536", x: [64, 576], what: What::MatMul { n: 1536, b: PACKED } },
    Timed { name: "mm 64x576x1536", x: [64, 576], what: What::MatMul { n: 1536, b: DType::F32 } },
    Timed { name: "mm 512x512x512", x: [512, 512], what: What::MatMul { n: 512, b: PACKED } },
    Timed { name: "mm 512x512x512", x: [512, 512], what: What::MatMul { n: 512, b: DType::F32 } },
    Timed { name: "mm 1x2048x2048", x: [1, 2048], what: What::MatMul { n: 2048, b: PACKED } },
    Timed { name: "mm 1x2048x2048", x: [1, 2048], what: What::MatMul { n: 2048, b: DType::F32 } },
    Timed { name: "softmax 512x512", x: [512, 512], what: What::Softmax },
    Timed { name: "layernorm 512x576", x: [512, 576], what: What::Norm(NormKind::Layer) },
    Timed { name: "rmsnorm 512x576", x: [512, 576], what: What::Norm(NormKind::Rms) },
    Timed { name: "gelu 512x1536", x: [512, 1536], what: What::Gelu },
];

/// The time of an operator.
#[derive(Debug, Clone, Serialize)]
pub struct OpTime {
    /// The operator and its shape; a matmul is m x k x n.
    pub op: &'static str,
    /// Operand b of a matmul: `weight`, uploaded once and packed, or `dense`, like any other tensor.
    pub b: Option<&'static str>,
    /// Time of compilation, the first batch and its read.
    pub first_ms: f64,
    /// Milliseconds of an operator, over all batches; each batch includes the read of its last result.
    pub ms: Spread,
}

/// Times of all operators. Field names are stable: other programs read the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct OpsReport {
    /// The kind of backend.
    pub backend: &'static str,
    /// The device.
    pub adapter: String,
    /// Operators of a batch.
    pub queued: usize,
    /// Each operator.
    pub ops: Vec<OpTime>,
}

impl Timed {
    /// Makes a graph of so many independent copies of the operator, and the fills of its inputs.
    fn graph(&self, queued: usize) -> Result<(Graph, Vec<Fill>), Error> {
        let mut graph = Graph::new();
        let mut operands = vec![graph.input("x", &self.x, DType::F32)?];
        let cols = self.x[1];
        let op: Op = match self.what {
            What::MatMul { n, b } => {
                let kind = if matches!(b, DType::Packed(_)) { Kind::Weight } else { Kind::Input };
                operands.push(graph.external(kind, "b", &[n, cols], b)?);
                MatMul.into()
            }
            What::Softmax => Softmax { scale: 1.0, softcap: 0.0, masking: Masking::default(), sinks: false }.into(),
            What::Norm(kind) => {
                for name in ["gamma", "beta"].into_iter().take(kind.params()) {
                    operands.push(graph.weight(name, &[cols], DType::F32)?);
                }
                Norm { kind, eps: 1e-5, heads: 1 }.into()
            }
            What::Gelu => Unary { kind: UnaryKind::GeluTanh }.into(),
        };
        // Each result is an output: results that are not needed would not be computed.
        for index in 0..queued {
            let y = graph.push(op.clone(), &operands)?;
            graph.output(y, format!("y{index}"))?;
        }
        Ok((graph, vec![Fill::Blocks; operands.len() + queued]))
    }

    async fn time(&self, backend: &dyn Backend, queued: usize, host: &dyn Host) -> Result<OpTime, Error> {
        let (graph, fills) = self.graph(queued)?;
        let start = host.now_ms();
        let mut rig = timing::rig(backend, &graph, &fills)?;
        timing::time(&mut rig, 1, host).await?;
        let first_ms = host.now_ms() - start;
        let mut times = Vec::with_capacity(BATCHES);
        let start = host.now_ms();
        while times.len() < LEAST || (times.len() < BATCHES && host.now_ms() - start < ENOUGH_MS) {
            times.push(timing::time(&mut rig, 1, host).await? / queued as f64);
        }
        let b = match self.what {
            What::MatMul { b: DType::Packed(_), .. } => Some("weight"),
            What::MatMul { .. } => Some("dense"),
            _ => None,
        };
        Ok(OpTime { op: self.name, b, first_ms, ms: Spread::of(times) })
    }
}

/// Chooses a backend and times each operator, `queued` (at least 1) copies at a time. Calls `progress` with each name.
///
/// *Errors*: no backend works; those of the backend.
pub async fn ops(
    options: &SelectOptions,
    queued: usize,
    host: &dyn Host,
    progress: &mut dyn FnMut(&str),
) -> Result<OpsReport, EngineError> {
    progress("choosing a backend");
    let (backend, _) = select(None, options, host).await?;
    let queued = queued.max(1);
    let mut ops = Vec::with_capacity(TIMED.len());
    for timed in TIMED {
        progress(timed.name);
        ops.push(timed.time(&*backend, queued, host).await?);
        host.turn().await;
    }
    Ok(OpsReport { backend: backend.info().name, adapter: backend.info().adapter.clone(), queued, ops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference_cpu::Cpu;

    #[test]
    fn each_shape_is_a_graph_of_as_many_operators() {
        for timed in TIMED {
            let (graph, fills) = timed.graph(3).unwrap();
            let covers = Cpu::new(Default::default()).cover(&graph).unwrap();
            assert_eq!(covers.len(), 3, "{}", timed.name);
            assert_eq!(graph.externals().count(), fills.len(), "{}", timed.name);
        }
    }
}
