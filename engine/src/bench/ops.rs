//! Single operators: so many queued, then one read. The shapes are those that other engines were timed with.

use backend_api::case::Fill;
use backend_api::op::{Masking, MatMul, Norm, NormKind, Op, Softmax, Unary, UnaryKind};
use backend_api::{Backend, DType, Error, Format, Graph, Kind};
use model::Host;
use serde::Serialize;

use super::Spread;
use crate::error::EngineError;
use crate::select::{SelectOptions, select};
use crate::timing;

/// Operators of one batch, by default.
pub const QUEUED: usize = 20;
/// Batches, as far as [`ENOUGH_MS`] allows.
const BATCHES: usize = 15;
/// At least so many batches are timed, however slow the device is.
const LEAST: usize = 3;
/// *Units*: milliseconds.
const ENOUGH_MS: f64 = 2000.0;

/// Operator that is timed, with its operands besides x.
#[derive(Debug, Clone, Copy)]
enum What {
    /// `b` is `[n, k]` in this form.
    MatMul {
        n: usize,
        b: DType,
    },
    Softmax,
    Norm(NormKind),
    Gelu,
}

/// One line of the table.
struct Timed {
    name: &'static str,
    /// The shape of x.
    x: [usize; 2],
    what: What,
}

const PACKED: DType = DType::Packed(Format::F32);

/// Matmuls are `m`x`k`x`n`, once with a weight as models have them and once with any dense operand.
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
    /// Compiling, the first batch and its read.
    pub first_ms: f64,
    /// Milliseconds an operator over the batches; the read of the last result is part of each batch.
    pub ms: Spread,
}

/// The times of all operators of the list. Field names are a contract: others read the JSON.
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
    /// So many of them, none of which needs the result of another, and what they are filled with.
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
        // Each result is an output: what nobody needs would not be computed.
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

/// Chooses a backend and times the operators of the list, `queued` (at least 1) of each at a time. `progress` is told the
/// name of each.
///
/// *Errors*: no backend works; what it returns.
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
