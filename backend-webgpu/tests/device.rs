//! Tests on a device. The conformance suite compares with the reference; here are the promises that are this backend's
//! own: weights in small chunks, steps without new objects, reads from reused buffers, errors instead of panics.
#![cfg(not(target_arch = "wasm32"))]

use anygpu_backend_webgpu::{Options, Tuning, WebGpu};
use backend_api::case::{Case, Fill};
use backend_api::compare::Values;
use backend_api::op::{GetRows, Index, MatMul};
use backend_api::run::{NativeHost, Rig};
use backend_api::{Backend, DType, Error, Format, Graph, Stats, StepParams, StorageDesc, StorageId, cases};

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

fn rig<'a>(gpu: &'a WebGpu, graph: &Graph, fills: &[Fill]) -> Rig<'a> {
    let rig = Rig::new(gpu, graph).unwrap();
    rig.fill(fills, &|index| index as u64).unwrap();
    rig
}

/// The states and outputs after a step; none if the case is not supported.
fn run(gpu: &WebGpu, case: &Case) -> Option<Vec<Values>> {
    let named = |e: Error| -> Rig<'_> { panic!("{} {}: {e}", case.op, case.name) };
    let mut rig = match Rig::of_case(gpu, case) {
        Err(Error::Unsupported(_) | Error::Limit { .. }) => return None,
        rig => rig.unwrap_or_else(named),
    };
    rig.step(&case.step).unwrap();
    Some(pollster::block_on(rig.results(&NativeHost::default())).unwrap())
}

#[test]
fn chunks_do_not_change_results() {
    let (Some(whole), Some(split)) = (open(Options::default()), small()) else { return };
    let (mut compared, before) = (0, split.stats());
    for case in cases::all().into_iter().filter(|c| ["get_rows", "embed", "matmul", "linear"].contains(&c.op)) {
        if let (Some(a), Some(b)) = (run(&whole, &case), run(&split, &case)) {
            assert!(a == b, "{} {}", case.op, case.name);
            compared += 1;
        }
    }
    assert!(compared > 30, "only {compared} cases fit");
    assert!(split.stats().since(&before).dispatches > whole.stats().dispatches, "nothing was split");
}

fn linear(m: usize, n: usize, k: usize) -> (Graph, Vec<Fill>) {
    linear_in(Format::F32, m, n, k)
}

fn linear_in(format: Format, m: usize, n: usize, k: usize) -> (Graph, Vec<Fill>) {
    let mut graph = Graph::new();
    let x = graph.input("x", &[m, k], DType::F32).unwrap();
    let w = graph.weight("w", &[n, k], DType::Packed(format)).unwrap();
    let y = graph.push(MatMul, &[x, w]).unwrap();
    graph.output(y, "y").unwrap();
    (graph, vec![Fill::Uniform(-1.0, 1.0), Fill::Blocks, Fill::Values(vec![0.0])])
}

#[test]
fn linear_is_a_matmul() {
    let Some(gpu) = open(Options::default()) else { return };
    for m in [1, 37] {
        let (n, k) = (70, 100);
        let (graph, fills) = linear(m, n, k);
        let mut rig = rig(&gpu, &graph, &fills);
        let mut operands = graph.externals().zip(&fills).zip(0..);
        let mut operand =
            || operands.next().map(|(((_, tensor), fill), seed)| floats(&fill.bytes(tensor, seed))).unwrap();
        let (x, w) = (operand(), operand());
        rig.step(&StepParams::at(0, m as u32)).unwrap();
        let y = floats(&read(&gpu, rig.storages()[2], 0, m, m * n * 4));
        for (i, value) in y.iter().enumerate() {
            let (row, col) = (i / n, i % n);
            let sum: f64 = (0..k).map(|e| f64::from(x[row * k + e]) * f64::from(w[col * k + e])).sum();
            let near = approx::abs_diff_eq!(f64::from(*value), sum, epsilon = 1e-4);
            assert!(near, "{m}: [{row}, {col}] is {value}, not {sum}");
        }
    }
}

#[test]
fn steps_and_reads_make_no_objects() {
    let Some(gpu) = open(Options::default()) else { return };
    let (graph, fills) = linear(1, 64, 64);
    let mut running = rig(&gpu, &graph, &fills);
    let out = running.storages()[2];
    running.step(&StepParams::at(0, 1)).unwrap();
    read(&gpu, out, 0, 1, 256);
    let before = gpu.stats();
    for position in 0..5 {
        running.step(&StepParams::at(position, 1)).unwrap();
        read(&gpu, out, 0, 1, 256);
    }
    let expected =
        Stats { dispatches: 5, submits: 5, objects: 0, uploaded: 5 * 32, read_back: 5 * 256, memory: before.memory };
    assert_eq!(gpu.stats().since(&before), expected);
    while !gpu.idle().unwrap() {
        std::thread::yield_now();
    }
    let kernels = running.kernels();
    assert_eq!(kernels.len(), 1);
    assert!(kernels[0].name.starts_with("linear_vec F32 "), "{}", kernels[0].name);
}

#[test]
fn memory_returns_to_what_it_was() {
    let Some(gpu) = open(Options::default()) else { return };
    let before = gpu.stats().memory;
    let case = cases::all().into_iter().find(|c| c.op == "embed").unwrap();
    let running = rig(&gpu, &case.graph, &case.fills);
    assert!(gpu.stats().memory > before);
    drop(running);
    assert_eq!(gpu.stats().memory, before);
}

#[test]
fn wrong_calls_are_errors() {
    let Some(gpu) = small() else { return };
    let (graph, fills) = linear(4, 8, 32);
    let mut running = rig(&gpu, &graph, &fills);
    let (x, w) = (running.storages()[0], running.storages()[1]);
    let invalid = |result: Result<(), Error>| matches!(result, Err(Error::Invalid(_)));
    assert!(invalid(gpu.write(x, 0, &[0; 7])));
    assert!(invalid(gpu.write(x, 4, &[0; 128])));
    assert!(invalid(gpu.write(w, 0, &[0; 100])));
    assert!(invalid(gpu.read(x, 3, 2).map(drop)));
    assert!(invalid(gpu.read(w, 0, 1).map(drop)));
    assert!(invalid(gpu.write(StorageId(999), 0, &[])));
    assert!(invalid(gpu.compile(&gpu.plan(graph).unwrap(), &[x]).map(drop)));
    assert!(invalid(running.step(&StepParams::at(0, 0))));
    let pending = gpu.read(x, 0, 1).unwrap();
    assert!(invalid(gpu.try_read(pending, &mut [0; 4]).map(drop)));
    let mut graph = Graph::new();
    let huge = graph.weight("huge", &[8, 1 << 27], DType::Packed(Format::F32)).unwrap();
    assert!(matches!(gpu.create(&StorageDesc::of(graph.tensor(huge))), Err(Error::Limit { .. })));
    let rows = graph.push(GetRows { index: Index::Positions { rows: 8 } }, &[huge]).unwrap();
    graph.output(rows, "rows").unwrap();
    let refused = gpu.cover(&graph).unwrap_err();
    assert!(refused.to_string().contains("binding"), "{refused}");
}

#[test]
fn optional_features_can_be_left_alone() {
    let core = Options { optional_features: false, ..Options::default() };
    let (Some(gpu), Some(core)) = (open(Options::default()), open(core)) else { return };
    let title = |gpu: &WebGpu| {
        let (graph, fills) = linear(1, 8, 32);
        rig(gpu, &graph, &fills).kernels()[0].name.clone()
    };
    let has_subgroups =
        |gpu: &WebGpu| gpu.info().facts.iter().any(|(name, fact)| *name == "subgroups" && fact != "off");
    assert!(!has_subgroups(&core));
    assert!(!title(&core).contains("subgroups"));
    assert_eq!(title(&gpu).contains("subgroups"), has_subgroups(&gpu));
}

#[test]
fn a_tuning_shapes_kernels() {
    let tuning = Tuning::default().with("vec_lanes", 8).unwrap();
    let core = Options { optional_features: false, ..Options::default() };
    let (Some(gpu), Some(tuned)) = (open(core), open(Options { tuning: Some(tuning), ..core })) else { return };
    let workgroups = |gpu: &WebGpu| {
        let (graph, fills) = linear(1, 64, 32);
        rig(gpu, &graph, &fills).kernels()[0].grid
    };
    assert_ne!(workgroups(&gpu), workgroups(&tuned));
}

#[test]
fn a_codebook_is_one_buffer_of_the_device() {
    let Some(gpu) = open(Options::default()) else { return };
    let made = |format| {
        let before = gpu.stats();
        let (graph, fills) = linear_in(format, 1, 8, 256);
        drop(rig(&gpu, &graph, &fills));
        let after = gpu.stats();
        (after.objects - before.objects, after.memory - before.memory)
    };
    // The first program of a format makes its pipeline, and that of a grid its codebook; other programs find both.
    let [plain, grid] = [Format::Q8_0, Format::IQ2_XXS].map(|format| (made(format), made(format)));
    assert_eq!(grid.0.0 - grid.1.0, plain.0.0 - plain.1.0 + 1);
    assert_eq!([plain.0.1, plain.1.1, grid.0.1, grid.1.1], [0, 0, 512, 0]);
}
