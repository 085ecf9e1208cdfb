//! Tests of recurrent states, on any backend.

use backend_api::op::{GatedDeltaNet, Op, Scale, ShortConv, SsmScan};
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

/// An operator with a state of constant size.
struct Walk {
    op: Op,
    /// Rows and columns of the state of a sequence.
    state: [usize; 2],
    /// Shapes of the other operands; 0 stands for the rows of a step.
    others: &'static [&'static [usize]],
}

fn walks() -> [Walk; 3] {
    [
        Walk { op: ShortConv.into(), state: [3, 20], others: &[&[0, 20], &[20, 4]] },
        Walk { op: SsmScan.into(), state: [12, 7], others: &[&[0, 12], &[0, 4], &[4, 7], &[0, 14], &[0, 14], &[4]] },
        Walk {
            op: GatedDeltaNet { grouped: true }.into(),
            state: [12, 6],
            others: &[&[0, 12], &[0, 12], &[0, 12], &[0, 4], &[0, 4]],
        },
    ]
}

impl Walk {
    fn graph(&self, rows: usize, sequences: usize) -> Graph {
        let mut graph = Graph::new();
        graph.take_rows_of(sequences);
        let [each, cols] = self.state;
        let kind = Kind::State(Update::Replace);
        let mut operands = vec![graph.external(kind, "state", &[sequences * each, cols], DType::F32).unwrap()];
        for (i, shape) in self.others.iter().enumerate() {
            let shape: Vec<usize> = shape.iter().map(|n| if *n == 0 { rows } else { *n }).collect();
            let mut x = graph.input(format!("x{i}"), &shape, DType::F32).unwrap();
            // As in models, rows are results of other operators: the CPU takes inputs for the same in all rows.
            if self.others[i][0] == 0 {
                x = graph.push(Scale { factor: 2.0, bias: 0.0 }, &[x]).unwrap();
            }
            operands.push(x);
        }
        let results = graph.push_multi(self.op.clone(), &operands).unwrap();
        graph.output(results[0], "y").unwrap();
        graph
    }

    /// Writes the other operands: rows that are those of `seeds`, and what does not depend on them.
    fn write(&self, rig: &Rig<'_>, rows: usize, seeds: &[usize]) {
        for (i, shape) in self.others.iter().enumerate() {
            let len: usize = shape.iter().filter(|n| **n > 0).product();
            let mut all = match shape[0] {
                0 => seeds.iter().flat_map(|seed| values(10 * seed + i, len)).collect(),
                _ => values(i, len),
            };
            all.resize(if shape[0] == 0 { rows * len } else { len }, 1e4);
            rig.write(i + 1, bytemuck::cast_slice(&all)).unwrap();
        }
    }
}

/// Where each row is of a sequence of its own, operators with a state have the results and the states that they have for each
/// sequence alone, bit for bit, and leave the other states as they are.
pub fn states_apart(backend: &dyn Backend) {
    const SEQUENCES: usize = 5;
    const ROWS: usize = 4;
    if backend.info().batch_rows == 1 {
        return;
    }
    let host = NativeHost::default();
    for walk in walks() {
        let (one, name) = (walk.state.iter().product(), walk.op.name());
        let mut together = Rig::guarded(backend, &walk.graph(ROWS, SEQUENCES)).unwrap();
        let mut alone = Rig::guarded(backend, &walk.graph(1, 1)).unwrap();
        let mut states: Vec<Vec<f32>> = (0..SEQUENCES).map(|i| values(100 + i, one)).collect();
        together.write(0, bytemuck::cast_slice(&states.concat())).unwrap();
        for (position, order) in [&[3, 0, 4][..], &[4, 1, 3, 0], &[2]].into_iter().enumerate() {
            let seed = |sequence: usize| 20 + 7 * position + sequence;
            walk.write(&together, ROWS, &order.iter().map(|i| seed(*i)).collect::<Vec<_>>());
            let at = |sequence: &usize| StepParams { sequence: *sequence as u32, ..StepParams::at(position as u32, 1) };
            together.steps(&order.iter().map(at).collect::<Vec<_>>()).unwrap();
            let found = block_on(together.results(&host)).unwrap();
            let y = floats(&found[1].bytes);
            for (row, sequence) in order.iter().enumerate() {
                alone.write(0, bytemuck::cast_slice(&states[*sequence])).unwrap();
                walk.write(&alone, 1, &[seed(*sequence)]);
                alone.step(&StepParams::at(position as u32, 1)).unwrap();
                let expected = block_on(alone.results(&host)).unwrap();
                states[*sequence] = floats(&expected[0].bytes);
                let expected = floats(&expected[1].bytes);
                assert_eq!(y[row * expected.len()..][..expected.len()], expected, "{name}: row {row}, step {position}");
            }
            assert_eq!(floats(&found[0].bytes), states.concat(), "{name}: states after step {position}");
        }
    }
}
