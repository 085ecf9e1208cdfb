//! A graph of one's own, without a model: a gated layer of quantised matrices, on the CPU and on WebGPU, and how far
//! apart the results are.
//!
//!     cargo run --release -p anygpu-examples --bin custom_graph

use anygpu::native::{NativeHost, block_on};
use anyhow::Result;
use backend_api::case::Fill;
use backend_api::compare::{self, Values};
use backend_api::op::{Glu, GluKind, MatMul};
use backend_api::run::Rig;
use backend_api::{Backend, DType, Error, Format, Graph, StepParams};
use backend_webgpu::WebGpu;
use reference_cpu::Cpu;

const ROWS: usize = 4;

fn layer() -> Result<Graph, Error> {
    let mut graph = Graph::new();
    let q4 = DType::Packed(Format::Q4_0);
    let x = graph.input("x", &[ROWS, 64], DType::F32)?;
    let weights = [graph.weight("gate", &[128, 64], q4)?, graph.weight("up", &[128, 64], q4)?];
    let down = graph.weight("down", &[64, 128], q4)?;
    let (gate, up) = (graph.push(MatMul, &[x, weights[0]])?, graph.push(MatMul, &[x, weights[1]])?);
    let inner = graph.push(Glu { kind: GluKind::Swiglu }, &[gate, up])?;
    let y = graph.push(MatMul, &[inner, down])?;
    graph.output(y, "y")?;
    Ok(graph)
}

fn run(backend: &dyn Backend) -> Result<Vec<Values>, Error> {
    let mut rig = Rig::new(backend, &layer()?)?;
    let fills = [Fill::Uniform(-1.0, 1.0), Fill::Blocks, Fill::Blocks, Fill::Blocks, Fill::Values(vec![0.0])];
    rig.fill(&fills, &|external| external as u64)?;
    rig.step(&StepParams::at(0, ROWS as u32))?;
    block_on(rig.results(&NativeHost::default()))
}

fn main() -> Result<()> {
    let cpu = run(&Cpu::new(reference_cpu::Options::default()))?;
    println!("cpu: {} results of {} bytes", cpu.len(), cpu[0].bytes.len());
    match block_on(WebGpu::open(backend_webgpu::Options::default())) {
        Ok(webgpu) => {
            let adapter = webgpu.info().adapter.clone();
            let nmse = compare::nmse(&run(&webgpu)?[0], &cpu[0]).map_err(anyhow::Error::msg)?;
            println!("webgpu ({adapter}): NMSE {nmse:.1e}");
        }
        Err(why) => println!("{why}"),
    }
    Ok(())
}
