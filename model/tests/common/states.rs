//! Test of a recurrent state, on any backend.

use backend_api::op::ShortConv;
use backend_api::run::{NativeHost, Rig};
use backend_api::{Backend, DType, Graph, Kind, StepParams, Update};

use super::{block_on, floats, nmse};

const CHANNELS: usize = 70;
const TAPS: usize = 4;
const TOKENS: usize = 11;

fn values(seed: usize, len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

/// Makes a graph for steps of up to `rows` rows: the state, its input, the kernel, and the result.
fn graph(rows: usize) -> Graph {
    let mut graph = Graph::new();
    let tail = graph.external(Kind::State(Update::Replace), "tail", &[TAPS - 1, CHANNELS], DType::F32).unwrap();
    let x = graph.input("x", &[rows, CHANNELS], DType::F32).unwrap();
    let kernel = graph.weight("kernel", &[CHANNELS, TAPS], DType::F32).unwrap();
    let results = graph.push_multi(ShortConv.into(), &[tail, x, kernel]).unwrap();
    graph.output(results[0], "y").unwrap();
    graph
}

/// A convolution along a text gives the same results and the same final state in one step, in parts and row by row,
/// whatever the unused rows contain.
pub fn convolution(backend: &dyn Backend) {
    let (x, kernel) = (values(1, TOKENS * CHANNELS), values(2, CHANNELS * TAPS));
    let at = |i: usize, c: usize| {
        let taps = (0..TAPS).filter(|j| i + j + 1 >= TAPS);
        taps.map(|j| kernel[c * TAPS + j] * x[(i + j + 1 - TAPS) * CHANNELS + c]).sum::<f32>()
    };
    let expected: Vec<f32> = (0..TOKENS * CHANNELS).map(|i| at(i / CHANNELS, i % CHANNELS)).collect();
    let ways: [(usize, &[usize]); 5] = [(11, &[11]), (16, &[11]), (8, &[3, 1, 7]), (4, &[4, 4, 3]), (1, &[1; 11])];
    for (rows, pieces) in ways {
        let mut rig = Rig::guarded(backend, &graph(rows)).unwrap();
        rig.write(2, bytemuck::cast_slice(&kernel)).unwrap();
        let (mut done, mut y, mut tail) = (0, Vec::new(), Vec::new());
        for piece in pieces {
            let mut step = vec![1e4f32; rows * CHANNELS];
            step[..piece * CHANNELS].copy_from_slice(&x[done * CHANNELS..(done + piece) * CHANNELS]);
            rig.write(1, bytemuck::cast_slice(&step)).unwrap();
            rig.step(&StepParams::at(done as u32, *piece as u32)).unwrap();
            let results = block_on(rig.results(&NativeHost::default())).unwrap();
            tail = floats(&results[0].bytes);
            y.extend(floats(&results[1].bytes).into_iter().take(piece * CHANNELS));
            done += piece;
        }
        assert_eq!(tail, x[(TOKENS - TAPS + 1) * CHANNELS..], "{pieces:?} in steps of {rows}");
        let error = nmse(&y, &expected);
        assert!(error < 1e-12, "{pieces:?} in steps of {rows}: NMSE {error:.1e}");
    }
}
