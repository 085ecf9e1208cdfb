//! Tests on a device. The conformance suite compares with the reference; here are the promises that are this backend's
//! own: weights in small chunks, steps without new objects, reads from reused buffers, errors instead of panics.
#![cfg(not(target_arch = "wasm32"))]

use backend_api::case::{Case, Fill};
use backend_api::op::{GetRows, Index, Linear};
use backend_api::{
    Backend, DType, Error, Format, Graph, Kind, Op, Plan, Program, Stats, StepParams, StorageDesc, StorageId, Tensor,
};
use backend_webgpu::{Options, Tuning, WebGpu};

/// None if `ANYGPU_SKIP` names webgpu: a machine without an adapter must say so, or the test fails.
fn open(options: Options) -> Option<WebGpu> {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|s| s.trim() == "webgpu")) {
        println!("SKIPPED: ANYGPU_SKIP names webgpu");
        return None;
    }
    match pollster::block_on(WebGpu::open(options)) {
        Ok(gpu) => Some(gpu),
        Err(e) => panic!("{e}; or skip it with ANYGPU_SKIP=webgpu"),
    }
}

fn small() -> Option<WebGpu> {
    open(Options { max_binding: Some(4096), ..Options::default() })
}

fn read(gpu: &WebGpu, id: StorageId, first: usize, rows: usize, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    let read = gpu.read(id, first, rows).unwrap();
    while !gpu.try_read(read, &mut out).unwrap() {
        std::thread::yield_now();
    }
    out
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// A sequence that looks random (xorshift).
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 8) as f32 / 16_777_216.0
    }
}

/// Bytes for a tensor: blocks with scales of order 1, ids that fit most tables, floats in [-1, 1).
fn content(tensor: &Tensor, fill: &Fill, noise: &mut Noise) -> Vec<u8> {
    let n = tensor.shape.len();
    match tensor.dtype {
        DType::I32 => (0..n).flat_map(|_| (noise.next() % 8).to_le_bytes()).collect(),
        DType::F32 => match fill {
            Fill::Values(values) => (0..n).flat_map(|i| values[i % values.len()].to_le_bytes()).collect(),
            _ => (0..n).flat_map(|_| (noise.unit() * 2.0 - 1.0).to_le_bytes()).collect(),
        },
        DType::F16 => fill.bytes(tensor, u64::from(noise.next())),
        DType::Packed(format) => packed(format, tensor.shape.rows(), tensor.shape.cols(), noise),
    }
}

fn packed(format: Format, rows: usize, k: usize, noise: &mut Noise) -> Vec<u8> {
    let spec = format.spec();
    let mut bytes = Vec::new();
    for _ in 0..rows * k / spec.block_len {
        let mut block: Vec<u8> = (0..spec.block_bytes).map(|_| noise.next() as u8).collect();
        match format {
            Format::F32 => block.copy_from_slice(&(noise.unit() - 0.5).to_le_bytes()),
            Format::BF16 => block.copy_from_slice(&(noise.unit() - 0.5).to_le_bytes()[2..]),
            _ => spec.halves.iter().for_each(|at| block[at + 1] = block[at + 1] & 0x83 | 0x2c),
        }
        bytes.extend(block);
    }
    bytes
}

struct Running {
    program: Box<dyn Program>,
    storages: Vec<(StorageId, Tensor)>,
}

fn load(gpu: &WebGpu, graph: Graph, fills: &[Fill]) -> Result<Running, Error> {
    let mut noise = Noise(0x9e37_79b9);
    let mut storages = Vec::new();
    let externals: Vec<Tensor> = graph.externals().map(|(_, t)| t.clone()).collect();
    for (tensor, fill) in externals.into_iter().zip(fills) {
        let id = gpu.create(&StorageDesc::of(&tensor))?;
        gpu.write(id, 0, &content(&tensor, fill, &mut noise))?;
        storages.push((id, tensor));
    }
    let ids: Vec<StorageId> = storages.iter().map(|(id, _)| *id).collect();
    let program = gpu.compile(&Plan::new(graph, &|t| gpu.slot_size(t)), &ids)?;
    Ok(Running { program, storages })
}

/// The states and outputs after a step; none if the case is not supported.
fn run(gpu: &WebGpu, case: &Case) -> Option<Vec<Vec<u8>>> {
    let mut running = match load(gpu, case.graph.clone(), &case.fills) {
        Ok(running) => running,
        Err(Error::Unsupported(_) | Error::Limit { .. }) => return None,
        Err(error) => panic!("{} {}: {error}", case.op, case.name),
    };
    running.program.step(&case.step).unwrap_or_else(|e| panic!("{} {}: {e}", case.op, case.name));
    let mut results = Vec::new();
    for (id, tensor) in &running.storages {
        if matches!(tensor.kind, Kind::Output | Kind::State) {
            let (rows, cols) = backend_api::host_rows(&tensor.shape);
            results.push(read(gpu, *id, 0, rows, rows * cols * 4));
        }
    }
    drop(running.program);
    running.storages.iter().for_each(|(id, _)| gpu.destroy(*id));
    Some(results)
}

#[test]
fn chunks_do_not_change_results() {
    let (Some(whole), Some(split)) = (open(Options::default()), small()) else { return };
    let (mut compared, before) = (0, split.stats());
    for case in Op::all_cases().into_iter().filter(|c| ["get_rows", "embed", "matmul", "linear"].contains(&c.op)) {
        if let (Some(a), Some(b)) = (run(&whole, &case), run(&split, &case)) {
            assert!(a == b, "{} {}", case.op, case.name);
            compared += 1;
        }
    }
    assert!(compared > 30, "only {compared} cases fit");
    assert!(split.stats().since(&before).dispatches > whole.stats().dispatches, "nothing was split");
}

fn linear(m: usize, n: usize, k: usize) -> (Graph, Vec<Fill>) {
    let mut graph = Graph::new();
    let x = graph.input("x", &[m, k], DType::F32).unwrap();
    let w = graph.weight("w", &[n, k], DType::Packed(Format::F32)).unwrap();
    let y = graph.push(Linear::PLAIN, &[x, w]).unwrap();
    graph.output(y, "y").unwrap();
    (graph, vec![Fill::Uniform(-1.0, 1.0), Fill::Blocks, Fill::Values(vec![0.0])])
}

#[test]
fn linear_is_a_matmul() {
    let Some(gpu) = open(Options::default()) else { return };
    for m in [1, 37] {
        let (n, k) = (70, 100);
        let (graph, fills) = linear(m, n, k);
        let mut running = load(&gpu, graph, &fills).unwrap();
        let x = floats(&read(&gpu, running.storages[0].0, 0, m, m * k * 4));
        let mut noise = Noise(0x9e37_79b9);
        content(&running.storages[0].1, &fills[0], &mut noise);
        let w = floats(&content(&running.storages[1].1, &fills[1], &mut noise));
        running.program.step(&StepParams::at(0, m as u32)).unwrap();
        let y = floats(&read(&gpu, running.storages[2].0, 0, m, m * n * 4));
        for (i, value) in y.iter().enumerate() {
            let (row, col) = (i / n, i % n);
            let sum: f64 = (0..k).map(|e| f64::from(x[row * k + e]) * f64::from(w[col * k + e])).sum();
            assert!((f64::from(*value) - sum).abs() < 1e-4, "{m}: [{row}, {col}] is {value}, not {sum}");
        }
    }
}

#[test]
fn steps_and_reads_make_no_objects() {
    let Some(gpu) = open(Options::default()) else { return };
    let (graph, fills) = linear(1, 64, 64);
    let mut running = load(&gpu, graph, &fills).unwrap();
    let out = running.storages[2].0;
    running.program.step(&StepParams::at(0, 1)).unwrap();
    read(&gpu, out, 0, 1, 256);
    let before = gpu.stats();
    for position in 0..5 {
        running.program.step(&StepParams::at(position, 1)).unwrap();
        read(&gpu, out, 0, 1, 256);
    }
    let expected =
        Stats { dispatches: 5, submits: 5, objects: 0, uploaded: 5 * 32, read_back: 5 * 256, memory: before.memory };
    assert_eq!(gpu.stats().since(&before), expected);
    while !gpu.idle().unwrap() {
        std::thread::yield_now();
    }
    let kernels = running.program.kernels();
    assert_eq!(kernels.len(), 1);
    assert!(kernels[0].name.starts_with("linear_vec F32 "), "{}", kernels[0].name);
}

#[test]
fn memory_returns_to_what_it_was() {
    let Some(gpu) = open(Options::default()) else { return };
    let before = gpu.stats().memory;
    let case = Op::all_cases().into_iter().find(|c| c.op == "embed").unwrap();
    let storages = load(&gpu, case.graph, &case.fills).unwrap().storages;
    assert!(gpu.stats().memory > before);
    storages.iter().for_each(|(id, _)| gpu.destroy(*id));
    assert_eq!(gpu.stats().memory, before);
}

#[test]
fn wrong_calls_are_errors() {
    let Some(gpu) = small() else { return };
    let (graph, fills) = linear(4, 8, 32);
    let mut running = load(&gpu, graph.clone(), &fills).unwrap();
    let (x, w) = (running.storages[0].0, running.storages[1].0);
    let invalid = |result: Result<(), Error>| matches!(result, Err(Error::Invalid(_)));
    assert!(invalid(gpu.write(x, 0, &[0; 7])));
    assert!(invalid(gpu.write(x, 4, &[0; 128])));
    assert!(invalid(gpu.write(w, 0, &[0; 100])));
    assert!(invalid(gpu.read(x, 3, 2).map(drop)));
    assert!(invalid(gpu.read(w, 0, 1).map(drop)));
    assert!(invalid(gpu.write(StorageId(999), 0, &[])));
    assert!(invalid(gpu.compile(&Plan::new(graph, &|t| gpu.slot_size(t)), &[x]).map(drop)));
    assert!(invalid(running.program.step(&StepParams::at(0, 0))));
    let pending = gpu.read(x, 0, 1).unwrap();
    assert!(invalid(gpu.try_read(pending, &mut [0; 4]).map(drop)));
    let huge = Tensor {
        name: "huge".into(),
        shape: backend_api::Shape::new(&[8, 1 << 27]).unwrap(),
        dtype: DType::Packed(Format::F32),
        kind: Kind::Weight,
    };
    assert!(matches!(gpu.create(&StorageDesc::of(&huge)), Err(Error::Limit { .. })));
    let out = Tensor { dtype: DType::F32, kind: Kind::Temporary, ..huge.clone() };
    let op = Op::from(GetRows { index: Index::Positions { rows: 8 } });
    let refused = gpu.supports(&op, &[&huge], &[&out]).unwrap_err();
    assert!(refused.to_string().contains("binding"), "{refused}");
}

#[test]
fn optional_features_can_be_left_alone() {
    let core = Options { optional_features: false, ..Options::default() };
    let (Some(gpu), Some(core)) = (open(Options::default()), open(core)) else { return };
    let title = |gpu: &WebGpu| {
        let (graph, fills) = linear(1, 8, 32);
        load(gpu, graph, &fills).unwrap().program.kernels()[0].name.clone()
    };
    let has_subgroups =
        |gpu: &WebGpu| gpu.info().facts.iter().any(|(name, fact)| *name == "subgroups" && fact != "off");
    assert!(!has_subgroups(&core));
    assert!(!title(&core).contains("subgroups"));
    assert_eq!(title(&gpu).contains("subgroups"), has_subgroups(&gpu));
}

#[test]
fn a_tuning_shapes_kernels() {
    let tuning = Tuning::default().with("vec_wg", 32).unwrap();
    let core = Options { optional_features: false, ..Options::default() };
    let (Some(gpu), Some(tuned)) = (open(core), open(Options { tuning: Some(tuning), ..core })) else { return };
    let workgroups = |gpu: &WebGpu| {
        let (graph, fills) = linear(1, 64, 32);
        load(gpu, graph, &fills).unwrap().program.kernels()[0].grid
    };
    assert_ne!(workgroups(&gpu), workgroups(&tuned));
}
