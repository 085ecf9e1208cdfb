//! Promises of the backend beyond right numbers: counters, partial writes, limits, errors. On llvmpipe or a GPU.
#![cfg(not(target_arch = "wasm32"))]

use anygpu_backend_webgl::{Layout, Options, Tuning, WebGl};
use backend_api::form::{Activation, ArgMaxAppend, Linear, QkvAppend, SelfAttention};
use backend_api::op::{
    Append, At, Attention, GetRows, GluKind, Index, Masking, MatMul, Norm, NormKind, RopeMode, Sample, TopK, Unary,
    UnaryKind,
};
use backend_api::{Backend, DType, Error, Format, Graph, Program, Shape, StepParams, StorageDesc, StorageId, TensorId};

/// The backend, or `None` where there is no EGL; the test then says so.
/// None if `ANYGPU_SKIP` names webgl: a machine without a driver must say so, or the test fails.
fn open(options: Options) -> Option<WebGl> {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|s| s.trim() == "webgl")) {
        println!("SKIPPED: ANYGPU_SKIP names webgl");
        return None;
    }
    match WebGl::open(options) {
        Ok(gl) => Some(gl),
        Err(e) => panic!("{e}; or skip it with ANYGPU_SKIP=webgl"),
    }
}

fn both() -> impl Iterator<Item = WebGl> {
    Layout::ALL.iter().copied().filter_map(|layout| open(Options { layout, ..Options::default() }))
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn read(gl: &WebGl, id: StorageId, first: usize, rows: usize, cols: usize) -> Vec<f32> {
    let read = gl.read(id, first, rows).unwrap();
    let mut bytes = vec![0u8; rows * cols * 4];
    while !gl.try_read(read, &mut bytes).unwrap() {}
    assert!(gl.try_read(read, &mut bytes).is_err(), "a finished read is forgotten");
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn create(gl: &WebGl, shape: &[usize], dtype: DType, guard_rows: usize) -> StorageId {
    let shape = Shape::new(shape).unwrap();
    gl.create(&StorageDesc { name: "storage".into(), shape, dtype, guard_rows }).unwrap()
}

fn compile(gl: &WebGl, graph: Graph) -> (Box<dyn Program>, Vec<StorageId>) {
    let plan = gl.plan(graph).unwrap();
    let ids: Vec<StorageId> = plan.graph().externals().map(|(_, t)| gl.create(&StorageDesc::of(t)).unwrap()).collect();
    (gl.compile(&plan, &ids).unwrap(), ids)
}

#[test]
fn unary_and_linear_compute() {
    for gl in both() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[2, 6], DType::F32).unwrap();
        let w = graph.weight("w", &[5, 6], DType::Packed(Format::F32)).unwrap();
        let y = graph.push(Unary { kind: UnaryKind::Neg }, &[x]).unwrap();
        let z = graph.push(MatMul, &[y, w]).unwrap();
        graph.output(z, "z").unwrap();
        let (mut program, ids) = compile(&gl, graph);
        let x: Vec<f32> = (0..12).map(|i| i as f32 * 0.5 - 2.0).collect();
        let w: Vec<f32> = (0..30).map(|i| (i % 7) as f32 - 3.0).collect();
        gl.write(ids[0], 0, &floats(&x)).unwrap();
        gl.write(ids[1], 0, &floats(&w)).unwrap();
        program.step(&StepParams::at(0, 2)).unwrap();
        let dot = |i: usize, j: usize| (0..6).map(|c| -x[i * 6 + c] * w[j * 6 + c]).sum::<f32>();
        let expected: Vec<f32> = (0..10).map(|at| dot(at / 5, at % 5)).collect();
        assert_eq!(read(&gl, ids[2], 0, 2, 5), expected);
        assert_eq!(program.kernels().len(), 2);
    }
}

#[test]
fn steps_and_reads_make_no_objects_and_one_submit() {
    for gl in both() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[1, 33], DType::F32).unwrap();
        let y = graph.push(Unary { kind: UnaryKind::Abs }, &[x]).unwrap();
        graph.output(y, "y").unwrap();
        let (mut program, ids) = compile(&gl, graph);
        program.step(&StepParams::at(0, 1)).unwrap();
        read(&gl, ids[1], 0, 1, 33);
        let before = gl.stats();
        program.step(&StepParams::at(0, 1)).unwrap();
        let step = gl.stats().since(&before);
        // The read that follows hands the step over.
        assert_eq!((step.dispatches, step.submits, step.objects, step.uploaded), (1, 0, 0, 32));
        read(&gl, ids[1], 0, 1, 33);
        let spent = gl.stats().since(&before);
        assert_eq!((spent.objects, spent.submits), (0, 1));
        let before = gl.stats();
        program.step(&StepParams::at(0, 1)).unwrap();
        program.step(&StepParams::at(0, 1)).unwrap();
        assert_eq!(gl.stats().since(&before).submits, 1, "the second step hands the first one over");
        let before = gl.stats();
        read(&gl, ids[1], 0, 1, 33);
        let spent = gl.stats().since(&before);
        assert!(spent.read_back >= 33 * 4);
        let mut waits = 0;
        while !gl.idle().unwrap() {
            waits += 1;
        }
        assert!(waits <= 1_000_000 && gl.idle().unwrap(), "what is idle stays idle");
    }
}

#[test]
fn a_profile_is_a_step_with_a_time_for_each_kernel() {
    for gl in both() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[2, 64], DType::F32).unwrap();
        let y = graph.push(Unary { kind: UnaryKind::Neg }, &[x]).unwrap();
        let z = graph.push(Unary { kind: UnaryKind::Abs }, &[y]).unwrap();
        graph.output(z, "z").unwrap();
        let (mut program, ids) = compile(&gl, graph);
        gl.write(ids[0], 0, &floats(&[3.0; 128])).unwrap();
        let clock = gl.info().facts.contains(&("timers", "true".into()));
        assert!(program.profile(&[StepParams::at(0, 0)]).is_err() || !clock, "a step has rows");
        let profile = program.profile(&[StepParams::at(0, 2)]).unwrap();
        assert_eq!(profile.is_some(), clock);
        let Some(mut profile) = profile else { continue };
        let times = loop {
            if let Some(times) = profile.try_read().unwrap() {
                break times;
            }
        };
        assert_eq!(times.len(), program.kernels().len());
        assert!(times.iter().all(|ms| ms.is_finite() && *ms >= 0.0), "{times:?}");
        assert_eq!(read(&gl, ids[1], 0, 2, 64), [3.0; 128]);
        // Ordinary steps go on as before.
        gl.write(ids[0], 0, &floats(&[-5.0; 128])).unwrap();
        program.step(&StepParams::at(0, 2)).unwrap();
        assert_eq!(read(&gl, ids[1], 0, 2, 64), [5.0; 128]);
    }
}

#[test]
fn memory_is_given_back() {
    for gl in both() {
        let before = gl.stats().memory;
        let id = create(&gl, &[10, 100], DType::F32, 0);
        assert!(gl.stats().memory >= before + 4000);
        gl.destroy(id);
        assert_eq!(gl.stats().memory, before);
        assert!(gl.read(id, 0, 1).is_err());
    }
}

#[test]
fn vectors_are_written_in_part() {
    for gl in both() {
        let id = create(&gl, &[10], DType::F32, 3);
        assert_eq!(read(&gl, id, 0, 13, 1), [0.0; 13]);
        gl.write(id, 1, &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
        gl.write(id, 3, &floats(&[9.0])).unwrap();
        gl.write(id, 8, &floats(&[7.0, 7.5, 8.0])).unwrap();
        let expected = [0.0, 1.0, 2.0, 9.0, 4.0, 5.0, 6.0, 0.0, 7.0, 7.5, 8.0, 0.0, 0.0];
        assert_eq!(read(&gl, id, 0, 13, 1), expected);
        assert_eq!(read(&gl, id, 6, 4, 1), expected[6..10]);
        assert!(gl.write(id, 12, &floats(&[1.0, 2.0])).is_err());
        assert!(gl.write(id, 0, &[1, 2, 3]).is_err());
    }
}

#[test]
fn rows_fold_over_narrow_textures() {
    for &layout in Layout::ALL {
        let Some(gl) = open(Options { layout, max_texture_size: Some(64), ..Options::default() }) else { return };
        let id = create(&gl, &[9, 101], DType::F32, 1);
        let values: Vec<f32> = (0..909).map(|i| i as f32).collect();
        gl.write(id, 0, &floats(&values[..303])).unwrap();
        gl.write(id, 3, &floats(&values[303..])).unwrap();
        assert_eq!(read(&gl, id, 0, 9, 101), values);
        assert_eq!(read(&gl, id, 4, 2, 101), values[404..606]);
        assert_eq!(read(&gl, id, 9, 1, 101), [0.0; 101]);
    }
}

#[test]
fn weights_fold_over_layers() {
    let Some(gl) = open(Options { max_texture_size: Some(16), ..Options::default() }) else { return };
    // 40 rows of 32 floats are 320 texels: two layers of 16 x 16.
    let mut graph = Graph::new();
    let x = graph.input("x", &[1, 32], DType::F32).unwrap();
    let w = graph.weight("w", &[40, 32], DType::Packed(Format::F32)).unwrap();
    let y = graph.push(MatMul, &[x, w]).unwrap();
    graph.output(y, "y").unwrap();
    let (mut program, ids) = compile(&gl, graph);
    let mut x = [0.0; 32];
    x[5] = 1.0;
    let w: Vec<f32> = (0..40 * 32).map(|i| i as f32).collect();
    gl.write(ids[0], 0, &floats(&x)).unwrap();
    gl.write(ids[1], 0, &floats(&w[..24 * 32])).unwrap();
    gl.write(ids[1], 24, &floats(&w[24 * 32..])).unwrap();
    program.step(&StepParams::at(0, 1)).unwrap();
    let expected: Vec<f32> = (0..40).map(|row| (row * 32 + 5) as f32).collect();
    assert_eq!(read(&gl, ids[2], 0, 1, 40), expected);
}

#[test]
fn too_large_tensors_are_refused_with_a_remedy() {
    let Some(gl) = open(Options { max_texture_size: Some(64), ..Options::default() }) else { return };
    let shape = Shape::new(&[1 << 10, 1 << 10]).unwrap();
    let desc = StorageDesc { name: "big".into(), shape, dtype: DType::F32, guard_rows: 0 };
    let error = gl.create(&desc).unwrap_err();
    assert!(matches!(&error, Error::Limit { need, have: 4096, .. } if *need == 1 << 18), "{error}");
}

#[test]
fn steps_out_of_range_are_refused() {
    for gl in both() {
        let mut graph = Graph::new();
        let state = graph.state("state", &[8, 5], DType::F32).unwrap();
        let x = graph.input("x", &[2, 5], DType::F32).unwrap();
        graph.push(Append { at: At::Position }, &[state, x]).unwrap();
        let (mut program, ids) = compile(&gl, graph);
        gl.write(ids[1], 0, &floats(&[1.0; 10])).unwrap();
        for params in [StepParams::at(0, 0), StepParams::at(0, 3), StepParams::at(7, 2), StepParams::at(u32::MAX, 1)] {
            assert!(matches!(program.step(&params), Err(Error::Invalid(_))), "{params:?}");
        }
        program.step(&StepParams::at(6, 2)).unwrap();
        assert_eq!(read(&gl, ids[0], 5, 3, 5), [[0.0; 5].as_slice(), &[1.0; 10]].concat());
    }
}

#[test]
fn ids_beyond_floats_are_refused() {
    for gl in both() {
        let id = create(&gl, &[4], DType::I32, 0);
        gl.write(id, 1, &(1_i32 << 24).to_le_bytes()).unwrap();
        assert!(gl.write(id, 1, &((1_i32 << 24) + 1).to_le_bytes()).is_err());
    }
}

/// One block of a llama: what decode pays for it.
fn llama_block(graph: &mut Graph, x: TensorId, d: usize, n_ctx: usize) -> TensorId {
    let (h, g, hd, ff) = (4, 2, 16, 96);
    let norm = Some(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 });
    let q4 = DType::Packed(Format::Q4_0);
    let gamma = graph.weight("gamma", &[d], DType::F32).unwrap();
    let wqkv = graph.weight("qkv", &[(h + 2 * g) * hd, d], q4).unwrap();
    let table = graph.weight("table", &[n_ctx, hd], DType::F32).unwrap();
    let k = graph.state("k", &[n_ctx, g * hd], DType::F32).unwrap();
    let v = graph.state("v", &[n_ctx, g * hd], DType::F32).unwrap();
    let projected = Linear { norm, ..Linear::PLAIN }.record(graph, &[x, gamma, wqkv]).unwrap()[0];
    let qkv = QkvAppend { n_head: h, n_head_kv: g, head_dim: hd, norm: None, rope: Some((hd, RopeMode::Normal)) };
    let masking = Masking { causal: true, cached: true, ..Masking::default() };
    let attention =
        Attention { n_head: h, n_head_kv: g, scale: 0.25, softcap: 0.0, max_bias: 0.0, masking, sinks: false };
    let op = SelfAttention { project: None, qkv, attention };
    let heads = op.record(graph, &[projected, table, k, v]).unwrap()[0];
    let wo = graph.weight("o", &[d, h * hd], q4).unwrap();
    let x = Linear { residual: true, ..Linear::PLAIN }.record(graph, &[heads, wo, x]).unwrap()[0];
    let up = graph.weight("up", &[2 * ff, d], q4).unwrap();
    let activation = Activation::Glu(GluKind::Swiglu);
    let y = Linear { norm, activation, ..Linear::PLAIN }.record(graph, &[x, gamma, up]).unwrap()[0];
    let down = graph.weight("down", &[d, ff], q4).unwrap();
    Linear { residual: true, ..Linear::PLAIN }.record(graph, &[y, down, x]).unwrap()[0]
}

#[test]
fn decoding_a_block_takes_seven_draws() {
    for gl in both() {
        let mut graph = Graph::new();
        let x = graph.input("x", &[1, 64], DType::F32).unwrap();
        let y = llama_block(&mut graph, x, 64, 32);
        let history = graph.state("history", &[32], DType::I32).unwrap();
        ArgMaxAppend.record(&mut graph, &[history, y]).unwrap();
        let (mut program, _) = compile(&gl, graph);
        let names: Vec<String> = program.kernels().into_iter().map(|k| k.name).collect();
        assert_eq!(names.len(), 7 + 2, "{names:#?}");
        let before = gl.stats();
        program.step(&StepParams::at(3, 1)).unwrap();
        assert_eq!(gl.stats().since(&before).dispatches, 9);
    }
}

#[test]
fn what_is_drawn_to_together_is_of_equal_size() {
    // Candidates and their ids are temporaries here, as in a model, where slots of all sizes are free. Norms of several
    // rows draw to two scratch textures at once, which they share with the lists of top-k. Short lines tell sizes apart.
    for &layout in Layout::ALL {
        let options = Options { layout, tuning: Some(Tuning::default()), ..Options::default() };
        let Some(gl) = open(options) else { return };
        let mut graph = Graph::new();
        let x = graph.input("x", &[2, 4100], DType::F32).unwrap();
        let gamma = graph.weight("gamma", &[4100], DType::F32).unwrap();
        let history = graph.state("history", &[8], DType::I32).unwrap();
        let y = graph.push(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 }, &[x, gamma]).unwrap();
        let last = graph.push(GetRows { index: Index::Last }, &[y]).unwrap();
        let best = graph.push_multi(TopK { k: 40 }.into(), &[last]).unwrap();
        let token = graph.push(Sample, &best).unwrap();
        graph.push(Append { at: At::Next }, &[history, token]).unwrap();
        let (mut program, ids) = compile(&gl, graph);
        let mut values = [0.0; 2 * 4100];
        values[4100 + 1234] = 5.0;
        gl.write(ids[0], 0, &floats(&values)).unwrap();
        gl.write(ids[1], 0, &floats(&[1.0; 4100])).unwrap();
        program.step(&StepParams { temperature: 0.1, top_k: 40, ..StepParams::at(2, 2) }).unwrap();
        let found = gl.read(ids[2], 4, 1).unwrap();
        let mut id = [0; 4];
        while !gl.try_read(found, &mut id).unwrap() {}
        assert_eq!(i32::from_le_bytes(id), 1234);
    }
}

#[test]
fn a_codebook_is_one_buffer_of_the_context() {
    for gl in both() {
        let made = |format| {
            let mut graph = Graph::new();
            let x = graph.input("x", &[1, 256], DType::F32).unwrap();
            let w = graph.weight("w", &[8, 256], DType::Packed(format)).unwrap();
            let y = graph.push(MatMul, &[x, w]).unwrap();
            graph.output(y, "y").unwrap();
            let before = gl.stats();
            let (program, ids) = compile(&gl, graph);
            drop(program);
            ids.into_iter().for_each(|id| gl.destroy(id));
            let after = gl.stats();
            (after.objects - before.objects, after.memory - before.memory)
        };
        // The first program of a format is linked, and that of a grid makes its codebook; other programs find both.
        let [plain, grid] = [Format::Q8_0, Format::IQ2_XXS].map(|format| (made(format), made(format)));
        assert_eq!(grid.0.0 - grid.1.0, plain.0.0 - plain.1.0 + 1);
        assert_eq!([plain.0.1, plain.1.1, grid.0.1, grid.1.1], [0, 0, 512, 0]);
    }
}
