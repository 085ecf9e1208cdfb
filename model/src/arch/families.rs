//! Tests of how keys and tensors of files affect the graphs of families.

use backend_api::Format;
use backend_api::op::{BinaryKind, Gate, Groups, Index, MatMulId, Op, RopeTable, Route, Yarn};

use super::attention::Temperature;
use super::keys::Keys;
use super::rope::{Rope, Sections};
use super::weights::Tensors;
use super::*;
use crate::gguf::{TensorInfo, Value};

/// Reads a fixture with other values of some keys; a key with `None` is removed.
fn file(name: &str, pairs: &[(&str, Option<Value>)]) -> Gguf {
    let path = format!("{}/../models/fixtures/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = std::fs::read(path).unwrap();
    for (key, _) in pairs {
        // A renamed key is not read.
        if let Some(at) = bytes.windows(key.len()).position(|found| found == key.as_bytes()) {
            bytes[at + key.len() - 1] = b'_';
        }
    }
    let mut gguf = Gguf::from_bytes(&bytes).unwrap();
    for (key, value) in pairs {
        assert!(value.clone().is_none_or(|value| gguf.metadata.insert(key, value)), "{key}");
    }
    gguf
}

fn float(value: f64) -> Option<Value> {
    Some(Value::Float(value))
}

fn uint(value: u64) -> Option<Value> {
    Some(Value::Uint(value))
}

fn text(value: &str) -> Option<Value> {
    Some(Value::String(value.into()))
}

/// Makes the graph of a greedy token.
fn graph(name: &str, pairs: &[(&str, Option<Value>)]) -> Graph {
    Recipe::new(&file(name, pairs), Some(64)).unwrap().graph(1, Head::GREEDY).unwrap()
}

fn refused(name: &str, pairs: &[(&str, Option<Value>)]) -> String {
    Recipe::new(&file(name, pairs), Some(64)).unwrap_err().to_string()
}

/// Collects the results of a function over the nodes of a graph.
fn of<T>(graph: &Graph, find: impl Fn(&Op) -> Option<T>) -> Vec<T> {
    graph.nodes().iter().filter_map(|node| find(&node.op)).collect()
}

fn windows(graph: &Graph) -> Vec<u32> {
    of(graph, |op| match op {
        Op::Attention(op) => Some(op.masking.window),
        _ => None,
    })
}

/// Returns the names of the queries' rotation tables, in the order of blocks.
fn tables(graph: &Graph) -> Vec<String> {
    let rotations = graph.nodes().iter().filter(|node| matches!(node.op, Op::Rope(_)));
    rotations.map(|node| graph.tensor(node.inputs[1]).name.clone()).step_by(2).collect()
}

fn rope(name: &str, n_ctx: usize, pairs: &[(&str, Option<Value>)]) -> Result<Rope, ModelError> {
    let gguf = file(name, pairs);
    let found: &str = gguf.metadata.require("general.architecture").unwrap();
    let &(architecture, _) = ARCHITECTURES.iter().find(|(name, _)| *name == found).unwrap();
    let tensors = Tensors::new(&gguf, architecture);
    let keys = Keys { metadata: &gguf.metadata, tensors: &tensors, n_ctx: Some(n_ctx) };
    Rope::read(&keys, &keys.sizes()?, backend_api::op::RopeMode::Neox)
}

#[test]
fn angles_are_stretched_as_files_say() {
    let plain = RopeTable::plain(16, 10_000.0);
    let read = |pairs: &[(&str, Option<Value>)]| rope("phi3-4k", 64, pairs).unwrap().angles;
    let (kind, factor) = ("phi3.rope.scaling.type", "phi3.rope.scaling.factor");
    assert_eq!(read(&[]), plain);
    assert_eq!(read(&[(factor, float(0.0))]), plain);
    assert_eq!(read(&[(factor, float(4.0)), (kind, text("none"))]), plain);
    let linear = RopeTable { freq_scale: 0.25, ..plain.clone() };
    assert_eq!(read(&[(factor, float(4.0))]), linear);
    assert_eq!(read(&[("phi3.rope.scale_linear", float(4.0))]), linear);
    let louder = [("phi3.rope.scaling.attn_factor", float(1.5)), (kind, text("longrope"))];
    assert_eq!(read(&louder), RopeTable { magnitude: 1.5, ..plain.clone() });

    let mut yarn = vec![(kind, text("yarn")), (factor, float(4.0))];
    let grow = 1.0 + 0.1 * 4f32.ln();
    let stretched = RopeTable {
        yarn: Some(Yarn { ext_factor: 1.0, beta_fast: 32.0, beta_slow: 1.0, n_ctx_orig: 256 }),
        ..linear.clone()
    };
    let found = read(&yarn);
    assert_eq!(RopeTable { magnitude: 1.0, ..found.clone() }, stretched);
    assert!((found.magnitude - 1.0).abs() < 1e-6, "{}", found.magnitude);
    yarn.push(("phi3.rope.scaling.yarn_log_multiplier", float(1.0)));
    let found = read(&yarn).magnitude;
    assert!((found - 1.0 / grow).abs() < 1e-6, "the table's growth is taken back: {found}");
    yarn.push(("phi3.rope.scaling.yarn_ext_factor", float(0.0)));
    assert_eq!(read(&yarn), linear);

    let error = rope("phi3-4k", 64, &[(kind, text("dynamic"))]).unwrap_err().to_string();
    assert!(error.contains("phi3.rope.scaling.type") && error.contains("longrope"), "{error}");
}

#[test]
fn factors_of_angles_suit_the_context() {
    let factors = |name, n_ctx| rope(name, n_ctx, &[]).map(|rope| rope.factors);
    assert_eq!(factors("phi3-longrope", 300).unwrap(), Some("rope_factors_short.weight"));
    assert_eq!(factors("phi3-longrope", 301).unwrap(), Some("rope_factors_long.weight"));
    assert_eq!(factors("phi3-4k", 256).unwrap(), None);
    assert!(factors("phi3-4k", 257).unwrap_err().to_string().contains("1 to 256"));
}

#[test]
fn heads_rotate_in_part() {
    let graph = graph("phi3-4k", &[("phi3.rope.dimension_count", uint(12))]);
    let dims = of(&graph, |op| match op {
        Op::Rope(op) => Some(op.n_dims),
        _ => None,
    });
    assert_eq!(dims, [12; 6]);
    assert_eq!(windows(&graph), [0; 3], "the window of the file counts for nothing");
}

#[test]
fn every_fourth_block_of_smollm3_does_not_rotate() {
    assert_eq!(tables(&graph("smollm3-nope", &[])).len(), 4);
    assert_eq!(tables(&graph("smollm3-nope", &[("smollm3.block_count", uint(4))])).len(), 3);
}

#[test]
fn olmo3_stretches_angles_where_it_sees_all() {
    let key = "olmo2.attention.sliding_window";
    let (local, global) = ("rope_table_swa", "rope_table");
    let all = graph("olmo2-tiny", &[]);
    assert_eq!((windows(&all), tables(&all)), (vec![0; 3], vec![global.to_owned(); 3]));
    let period = graph("olmo2-tiny", &[(key, uint(7))]);
    assert_eq!((windows(&period), tables(&period)), (vec![7; 3], vec![local.to_owned(); 3]));
    let listed = Some(Value::Bools(vec![true, false, true]));
    let pairs = [
        (key, uint(7)),
        ("olmo2.attention.sliding_window_pattern", listed),
        ("olmo2.rope.scaling.type", text("yarn")),
        ("olmo2.rope.scaling.factor", float(8.0)),
    ];
    let recipe = Recipe::new(&file("olmo2-tiny", &pairs), Some(64)).unwrap();
    let graph = recipe.graph(1, Head::GREEDY).unwrap();
    assert_eq!((windows(&graph), tables(&graph)), (vec![7, 0, 7], vec![local.into(), global.into(), local.into()]));
    let stretched = |name: &str| match &recipe.weights().iter().find(|weight| weight.name == name).unwrap().contents {
        Contents::Rope(angles, None) => (angles.freq_base, angles.freq_scale, angles.yarn.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(stretched(local), (500_000.0, 1.0, false));
    assert_eq!(stretched(global), (500_000.0, 0.125, true));
}

#[test]
fn gemma2_may_have_two_bases() {
    let (local, global) = ("rope_table_swa".to_owned(), "rope_table".to_owned());
    let two = graph("gemma2-swa", &[("gemma2.rope.freq_base_swa", float(5000.0))]);
    assert_eq!(tables(&two)[..2], [local, global.clone()]);
    assert_eq!(tables(&graph("gemma2-swa", &[]))[..2], [global.clone(), global]);
}

#[test]
fn queries_grow_only_if_asked_to() {
    let factors = |graph: &Graph| {
        of(graph, |op| match op {
            Op::GetRows(op) => matches!(op.index, Index::Positions { .. }).then_some(()),
            Op::Binary(op) => (op.kind == BinaryKind::Mul).then_some(()),
            _ => None,
        })
        .len()
    };
    assert_eq!(factors(&graph("mistral3-yarn-temp", &[])), 1 + 3, "one row of the table for all blocks");
    assert_eq!(factors(&graph("mistral3-yarn-temp", &[("mistral3.attention.temperature_scale", None)])), 0);
    let rows = Temperature { scale: 0.5, n_ctx_orig: 8 }.rows([0, 7, 8, 23, 24].into_iter());
    assert_eq!(rows, [1.0, 1.0, 1.0 + 0.5 * 2f64.ln(), 1.0 + 0.5 * 3f64.ln(), 1.0 + 0.5 * 4f64.ln()].map(|x| x as f32));
}

#[test]
fn factors_of_granite_may_be_absent() {
    let scores = |graph: &Graph| {
        of(graph, |op| match op {
            Op::Attention(op) => Some(op.scale),
            _ => None,
        })
    };
    let unscaled = ["granite.attention.scale", "granite.residual_scale", "granite.embedding_scale"];
    let unscaled = graph("granite-scales", &unscaled.map(|key| (key, float(0.0))));
    assert_eq!(scores(&unscaled), [1.0 / 6f32.sqrt(); 3]);
    assert_eq!(scores(&graph("granite-scales", &[])), [0.11; 3]);
    let still = graph("granite-scales", &[("granite.rope.scaling.finetuned", Some(Value::Bool(false)))]);
    assert_eq!((tables(&unscaled).len(), tables(&still).len()), (3, 0));
    assert!(refused("granite-scales", &[("granite.logit_scale", float(0.0))]).contains("granite.logit_scale"));
}

/// Collects the routing of tokens in the blocks of a graph.
fn routes(graph: &Graph) -> Vec<Route> {
    of(graph, |op| match op {
        Op::Route(op) => Some(*op),
        _ => None,
    })
}

#[test]
fn gates_are_those_of_the_file_or_of_the_family() {
    let plain = Route { k: 2, gate: Gate::Softmax, biased: false, normalised: true, scale: 1.0, groups: None };
    assert_eq!(routes(&graph("mixtral-4x2", &[])), [plain; 2]);
    assert_eq!(routes(&graph("qwen3moe-8x2", &[])), [plain; 2]);
    let gate = "qwen3moe.expert_gating_func";
    for (number, gate_of) in [(0, Gate::Softmax), (2, Gate::Sigmoid), (3, Gate::SoftmaxOfChosen)] {
        let found = routes(&graph("qwen3moe-8x2", &[(gate, uint(number))]));
        assert_eq!(found, [Route { gate: gate_of, ..plain }; 2]);
    }
    let scaled = graph("qwen3moe-8x2", &[("qwen3moe.expert_weights_scale", float(2.5))]);
    assert_eq!(routes(&scaled), [Route { scale: 2.5, ..plain }; 2]);
    let sigmoid = Route { gate: Gate::Sigmoid, biased: true, ..plain };
    assert_eq!(routes(&graph("lfm2moe-sigmoid", &[])), [sigmoid; 3], "the first block is dense");
    assert_eq!(routes(&graph("gpt-oss-f32", &[])), [Route { gate: Gate::SoftmaxOfChosen, ..plain }; 3]);
    let groups = |count, used| [("expert_group_count", uint(count)), ("expert_group_used_count", uint(used))];
    let named = |pairs: [(&str, Option<Value>); 2]| pairs.map(|(key, value)| (format!("qwen3moe.{key}"), value));
    let of_groups = |count, used| {
        let pairs = named(groups(count, used));
        routes(&graph("qwen3moe-8x2", &pairs.each_ref().map(|(key, value)| (key.as_str(), value.clone()))))
    };
    assert_eq!(of_groups(4, 2), [Route { groups: Some(Groups { count: 4, used: 2 }), ..plain }; 2]);
    assert_eq!(of_groups(1, 1), [plain; 2]);
}

/// Returns the factor of the scores of attention and its temperature's table, if it has one.
fn scores(name: &str, pairs: &[(&str, Option<Value>)]) -> (f32, bool) {
    let graph = graph(name, pairs);
    let scales = of(&graph, |op| match op {
        Op::Attention(op) => Some(op.scale),
        _ => None,
    });
    assert!(scales.windows(2).all(|pair| pair[0] == pair[1]));
    (scales[0], graph.externals().any(|(_, tensor)| tensor.name == "attn_temperature"))
}

#[test]
fn longer_contexts_sharpen_latent_attention() {
    let (multiplier, kind) = ("deepseek2.rope.scaling.yarn_log_multiplier", "deepseek2.rope.scaling.type");
    let (log, root) = (40_f32.ln(), 18_f32.sqrt());
    let squared = |multiplier: f32| (1.0 + multiplier * log).powi(2) / root;
    let scale = |pairs: &[(&str, Option<Value>)]| scores("families/deepseek2-v2lite", pairs).0;
    for (found, expected) in [
        (scale(&[]), squared(0.0707)),
        (scale(&[(multiplier, None)]), squared(0.1)),
        (scale(&[(multiplier, None), ("deepseek2.rope.scaling.attn_factor", float(0.5))]), squared(0.1) / 4.0),
        (scale(&[(multiplier, None), (kind, text("none"))]), 1.0 / root),
        (scale(&[(multiplier, None), (kind, text("linear"))]), squared(0.1)),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} is not {expected}");
    }
}

#[test]
fn queries_of_latent_attention_may_grow_with_the_position() {
    let (scale, length) = ("deepseek2.attention.temperature_scale", "deepseek2.attention.temperature_length");
    let file = "families/deepseek2-v3";
    assert!(!scores(file, &[]).1);
    assert!(!scores(file, &[(scale, float(0.0))]).1);
    assert!(scores(file, &[(scale, float(0.1)), (length, uint(8192))]).1);
    assert!(refused(file, &[(scale, float(0.1))]).contains(length));
}

#[test]
fn files_without_sound_widths_of_latent_attention_are_refused() {
    let file = "families/deepseek2-v3";
    for (key, value) in [
        ("attention.kv_lora_rank", None),
        ("attention.kv_lora_rank", uint(0)),
        ("attention.kv_lora_rank", uint(15)),
        ("attention.q_lora_rank", None),
        ("attention.q_lora_rank", uint(1 << 30)),
        ("attention.key_length_mla", uint(8)),
        ("attention.value_length_mla", uint(0)),
        ("attention.value_length_mla", uint(13)),
        ("rope.dimension_count", None),
        ("rope.dimension_count", uint(18)),
        ("rope.dimension_count", uint(7)),
        ("attention.head_count", uint(5)),
    ] {
        let key = format!("deepseek2.{key}");
        let error = refused(file, &[(key.as_str(), value)]);
        assert!((1..300).contains(&error.len()), "{key}: {error}");
    }
    // Without a latent vector, queries are projected by one matrix, which this file does not have.
    assert!(refused(file, &[("deepseek2.attention.q_lora_rank", uint(0))]).contains("attn_q.weight"));
}

#[test]
fn latent_attention_caches_one_row_for_all_heads() {
    for (name, cols) in [("deepseek2-v2lite", 26), ("deepseek2-kvb-legacy", 18), ("minicpm3-short", 20)] {
        let recipe = Recipe::new(&file(&format!("families/{name}"), &[]), Some(64)).unwrap();
        let states = recipe.states().unwrap();
        let caches: Vec<_> = states.iter().filter(|state| state.name.contains("cache")).collect();
        assert_eq!(caches.len(), recipe.n_blocks());
        assert!(caches.iter().all(|cache| cache.shape == [64, cols]), "{name}");
    }
}

#[test]
fn experts_that_are_not_covered_are_refused_by_name() {
    for (key, value, why) in [
        ("qwen3moe.expert_gating_func", 4, "sqrt-softplus"),
        ("qwen3moe.expert_gating_func", 9, "9 is not known"),
        ("qwen3moe.expert_group_count", 8, "groups"),
        ("qwen3moe.expert_group_count", 3, "groups"),
        ("qwen3moe.expert_group_count", 33, "1 to 32"),
        ("qwen3moe.expert_used_count", 9, "1 to 8"),
        ("qwen3moe.expert_count", 0, "1 to 4096"),
    ] {
        let error = refused("qwen3moe-8x2", &[(key, uint(value))]);
        assert!(error.contains(key) && error.contains(why), "{error}");
    }
    let mut gguf = file("mixtral-4x2", &[]);
    for tensor in &mut gguf.tensors {
        tensor.name = tensor.name.replace("_exps", ".0").into();
    }
    let old = Recipe::new(&gguf, Some(64)).unwrap_err().to_string();
    assert!(old.contains("blk.0.ffn_down.0.weight") && old.contains("old version"), "{old}");
}

/// Returns the operators of a Mixtral whose tensors were changed.
fn mixtral_with(change: impl FnOnce(&mut Vec<TensorInfo>)) -> Result<Vec<Op>, ModelError> {
    let graph = with("mixtral-4x2", change)?;
    Ok(graph.nodes().iter().map(|node| node.op.clone()).collect())
}

/// Makes the graph of a file whose tensors were changed.
fn with(name: &str, change: impl FnOnce(&mut Vec<TensorInfo>)) -> Result<Graph, ModelError> {
    let mut gguf = file(name, &[]);
    change(&mut gguf.tensors);
    Recipe::new(&gguf, Some(64))?.graph(1, Head::GREEDY)
}

/// Makes a float tensor that the file does not have.
fn added(name: &str, shape: &[usize]) -> TensorInfo {
    TensorInfo { name: name.into(), format: Format::F32, shape: shape.into(), offset: 0, bytes: 0 }
}

#[test]
fn gates_and_up_parts_of_experts_may_share_a_tensor() {
    let fuse = |tensors: &mut Vec<TensorInfo>| {
        tensors.retain(|tensor| !tensor.name.ends_with("ffn_up_exps.weight"));
        for gates in tensors.iter_mut().filter(|tensor| tensor.name.ends_with("ffn_gate_exps.weight")) {
            gates.name = gates.name.replace("gate", "gate_up").into();
            gates.shape[1] *= 2;
        }
    };
    let products = mixtral_with(fuse).unwrap().into_iter().filter(|op| matches!(op, Op::MatMulId(_)));
    let half = |first| Op::from(MatMulId { rows: 20, stride: 40, first });
    let of_a_block = [half(0), half(20), MatMulId::dense(24).into()];
    assert!(products.eq([of_a_block.clone(), of_a_block].concat()));
    let biased = mixtral_with(|tensors| {
        fuse(tensors);
        tensors.push(added("blk.1.ffn_gate_up_exps.bias", &[4, 40]));
    });
    assert!(biased.unwrap_err().to_string().contains("blk.1.ffn_gate_up_exps.bias"));
}

#[test]
fn experts_may_have_factors_and_biases() {
    let names = |ops: Vec<Op>| ops.iter().map(Op::name).skip_while(|name| *name != "route").take(8).collect::<Vec<_>>();
    let plain = names(mixtral_with(|_| {}).unwrap());
    assert_eq!(plain[..6], ["route", "matmul_id", "matmul_id", "glu", "matmul_id", "weighted_sum"]);
    let scaled = mixtral_with(|tensors| tensors.push(added("blk.0.ffn_down_exps.scale", &[4])));
    assert_eq!(names(scaled.unwrap())[4..], ["matmul_id", "get_rows", "binary", "weighted_sum"]);
    let biased = mixtral_with(|tensors| tensors.push(added("blk.0.ffn_gate_exps.bias", &[4, 20])));
    assert_eq!(names(biased.unwrap())[1..5], ["matmul_id", "get_rows", "binary", "matmul_id"]);
}

#[test]
fn gpt_oss_sees_a_window_in_every_other_block_and_has_sinks() {
    let graph = graph("gpt-oss-f32", &[]);
    assert_eq!(windows(&graph), [5, 0, 5]);
    assert!(of(&graph, |op| if let Op::Attention(op) = op { Some(op.sinks) } else { None }).into_iter().all(|s| s));
    assert_eq!(tables(&graph), ["rope_table"; 3], "both kinds of blocks rotate alike");
}

#[test]
fn experts_are_refused() {
    for (name, key) in [
        ("phi3-4k", "phi3.expert_count"),
        ("smollm3-nope", "smollm3.expert_count"),
        ("olmo2-tiny", "olmo2.expert_count"),
        ("granite-scales", "granite.expert_count"),
        ("falcon-h1-tiny", "falcon-h1.expert_count"),
    ] {
        assert!(refused(name, &[(key, uint(8))]).contains("experts"), "{name}");
    }
}

#[test]
fn blocks_of_hybrids_may_have_other_numbers_of_heads() {
    let key = "lfm2.attention.head_count_kv";
    let listed = |heads: &[i32]| [(key, Some(Value::Ints(heads.to_vec())))];
    let mut gguf = file("lfm2-tiny", &listed(&[0, 0, 2, 0, 4]));
    for tensor in &mut gguf.tensors {
        if matches!(&*tensor.name, "blk.4.attn_k.weight" | "blk.4.attn_v.weight") {
            tensor.shape[0] *= 2;
        }
    }
    let recipe = Recipe::new(&gguf, Some(64)).unwrap();
    let heads = of(&recipe.graph(1, Head::GREEDY).unwrap(), |op| match op {
        Op::Attention(op) => Some((op.n_head, op.n_head_kv)),
        _ => None,
    });
    assert_eq!(heads, [(4, 2), (4, 4)]);
    for (heads, why) in [
        (&[0, 0, 2, 0, 3][..], "3 does not divide the 4 query heads of block 4"),
        (&[0, 0, 2, 0], "it lists 4 blocks"),
        (&[0; 5], "one block must attend"),
    ] {
        let error = refused("lfm2-tiny", &listed(heads));
        assert!(error.contains(key) && error.contains(why), "{error}");
    }
}

/// Returns for each block of a graph whether it has attention; blocks without a state of their own are left out.
fn attending(graph: &Graph) -> Vec<bool> {
    of(graph, |op| match op {
        Op::Attention(_) => Some(true),
        Op::GatedDeltaNet(_) | Op::SsmScan(_) => Some(false),
        _ => None,
    })
}

#[test]
fn qwen35_attends_where_files_say() {
    let (listed, period) = ("qwen35.attention.recurrent_layers", "qwen35.full_attention_interval");
    assert_eq!(attending(&graph("qwen35-tiny", &[])), [false, false, false, true]);
    // Blocks that look further ahead come last.
    assert_eq!(attending(&graph("qwen35-tiny", &[("qwen35.nextn_predict_layers", uint(1))])), [false; 3]);
    let blocks = |blocks: &[bool]| [(listed, Some(Value::Bools(blocks.to_vec()))), (period, uint(2))];
    assert_eq!(attending(&graph("qwen35-tiny", &blocks(&[true, true, true, false]))), [false, false, false, true]);
    assert!(refused("qwen35-tiny", &blocks(&[true; 3])).contains(listed));
    assert!(refused("qwen35-tiny", &[("qwen35.nextn_predict_layers", uint(4))]).contains("nextn_predict_layers"));
}

#[test]
fn falcon_mamba_norms_what_it_selects_by() {
    let norms = |pairs: &[(&str, Option<Value>)]| {
        of(&graph("mamba-tiny", pairs), |op| matches!(op, Op::Norm(_)).then_some(())).len()
    };
    assert_eq!(norms(&[]), 3 + 1);
    assert_eq!(norms(&[("mamba.ssm.dt_b_c_rms", Some(Value::Bool(true)))]), 4 * 3 + 1);
}

#[test]
fn states_of_constant_size_have_sizes_that_fit() {
    for (name, key, value) in [
        ("mamba-tiny", "mamba.ssm.conv_kernel", 1),
        ("mamba-tiny", "mamba.ssm.conv_kernel", 1000),
        ("mamba-tiny", "mamba.ssm.state_size", 1 << 20),
        ("mamba2-g2", "mamba2.ssm.time_step_rank", 5),
        ("mamba2-g2", "mamba2.ssm.group_count", 4),
        ("mamba2-g2", "mamba2.ssm.inner_size", u64::from(u32::MAX)),
        ("qwen35-tiny", "qwen35.ssm.group_count", 3),
        ("qwen35-tiny", "qwen35.ssm.time_step_rank", 3),
        ("qwen35-tiny", "qwen35.ssm.state_size", 0),
    ] {
        assert!(!refused(name, &[(key, uint(value))]).is_empty(), "{key} = {value}");
    }
}

#[test]
fn graphs_of_the_longest_prompts_are_small() {
    let nodes = |rows| {
        Recipe::new(&file("qwen35-tiny", &[]), Some(256)).unwrap().graph(rows, Head::GREEDY).unwrap().nodes().len()
    };
    assert!(nodes(128) <= nodes(1) + 2, "rows are walked down by kernels, not by nodes");
}

#[test]
fn sections_rotate_pairs_by_the_position_of_a_text() {
    let key = "qwen35.rope.dimension_sections";
    let still = |name: &str, sections: Option<Value>, order: Sections| -> Result<Vec<usize>, ModelError> {
        let gguf = file(name, &[(key, sections)]);
        let tensors = Tensors::new(&gguf, "qwen35");
        let keys = Keys { metadata: &gguf.metadata, tensors: &tensors, n_ctx: Some(64) };
        let mut rope = Rope::read(&keys, &keys.sizes()?, backend_api::op::RopeMode::Neox)?;
        rope.angles = RopeTable::plain(16, 10_000.0);
        rope.section(&keys, order)?;
        Ok((0..8).filter(|pair| rope.angles.factors.get(*pair) == Some(&f32::INFINITY)).collect())
    };
    let listed = |values: [i32; 4]| Some(Value::Ints(values.to_vec()));
    let in_turn = |values| still("qwen35-tiny", listed(values), Sections::InTurn).unwrap();
    let interleaved = |values| still("qwen35-tiny", listed(values), Sections::Interleaved).unwrap();
    assert_eq!(in_turn([2, 3, 3, 0]), [0; 0]);
    assert_eq!(in_turn([2, 2, 2, 2]), [6, 7]);
    assert_eq!(in_turn([1, 1, 0, 1]), [2, 5], "the sections begin anew");
    assert_eq!(interleaved([3, 3, 2, 0]), [0; 0]);
    assert_eq!(interleaved([3, 2, 2, 1]), [7], "pair 6 is the third of the first position");
    assert_eq!(interleaved([2, 2, 2, 2]), [6, 7]);
    assert_eq!(still("qwen35-tiny", None, Sections::Interleaved).unwrap(), [0; 0]);
    let error = still("qwen35-tiny", listed([0; 4]), Sections::InTurn).unwrap_err().to_string();
    assert!(error.contains(key), "{error}");
}

fn slopes(graph: &Graph) -> Vec<f32> {
    of(graph, |op| if let Op::Attention(op) = op { Some(op.max_bias) } else { None })
}

#[test]
fn positions_of_baichuan_depend_on_the_number_of_blocks() {
    let (name, key) = ("families/baichuan-40l-alibi", "baichuan.block_count");
    assert_eq!(slopes(&graph(name, &[])), [8.0; 40]);
    assert_eq!(slopes(&graph(name, &[(key, uint(3))])), [0.0; 3]);
    assert!(refused(name, &[(key, uint(32))]).contains("3 channels make no pairs"));
}

#[test]
fn slopes_are_those_of_the_file() {
    let key = "mpt.attention.max_alibi_bias";
    assert_eq!(slopes(&graph("families/mpt-clamp-bias", &[])), [4.0; 2]);
    assert_eq!(slopes(&graph("families/mpt-clamp-bias", &[(key, None)])), [0.0; 2]);
    assert_eq!(slopes(&graph("families/mpt-clamp-bias", &[(key, float(0.0))])), [0.0; 2]);
    assert!(refused("families/mpt-clamp-bias", &[(key, float(-1.0))]).contains(key));
    let key = "jais.attention.max_alibi_bias";
    assert!(refused("families/jais-alibi", &[(key, None)]).contains(key));
    assert!(Recipe::new(&file("families/bloom-h4", &[]), Some(1024)).is_ok());
}

#[test]
fn mpt_may_have_positions_norms_and_divisors() {
    let dividing = |op: &Op| {
        matches!(op, Op::Binary(op) if op.kind == BinaryKind::Div).then_some("div").or(match op {
            Op::Norm(norm) if norm.heads == 1 => Some("norm"),
            Op::GetRows(_) => Some("rows"),
            _ => None,
        })
    };
    let names = |graph: &Graph| of(graph, dividing);
    let plain = names(&graph("families/mpt-clamp-bias", &[]));
    assert_eq!(plain, ["rows", "norm", "norm", "norm", "norm", "norm"]);
    let all = with("families/mpt-clamp-bias", |tensors| {
        tensors.push(added("position_embd.weight", &[256, 40]));
        tensors.push(added("blk.0.ffn.act.scales", &[44]));
        for i in 0..2 {
            tensors.extend(["q", "k"].map(|part| added(&format!("blk.{i}.attn_{part}_norm.weight"), &[40])));
        }
    });
    let all = names(&all.unwrap());
    assert_eq!(all[..7], ["rows", "rows", "norm", "norm", "norm", "norm", "div"]);
    assert_eq!(all.len(), plain.len() + 1 + 4 + 1);
}

#[test]
fn biases_that_a_family_does_not_use_are_left_out() {
    let biased = |name: &str, width| {
        let graph = with(name, |tensors| tensors.push(added("blk.0.attn_output.bias", &[width]))).unwrap();
        graph.externals().any(|(_, tensor)| tensor.name == "blk.0.attn_output.bias")
    };
    assert!(!biased("families/refact-mqa", 32));
    assert!(biased("families/xverse-3l", 36));
}

#[test]
fn spark_may_list_heads_and_must_list_windows() {
    let (name, of_key) = ("families/spark2_5-4l", |key: &str| format!("spark2_5.{key}"));
    let heads = |pairs: &[(&str, Option<Value>)]| {
        of(
            &graph(name, pairs),
            |op| if let Op::Attention(op) = op { Some((op.n_head, op.masking.window)) } else { None },
        )
    };
    assert_eq!(heads(&[]), [(4, 8), (4, 8), (4, 8), (4, 0)]);
    let listed = of_key("attention.head_count");
    assert_eq!(heads(&[(&listed, Some(Value::Ints(vec![4; 4])))]), heads(&[]));
    let wider = refused(name, &[(&listed, Some(Value::Ints(vec![4, 4, 6, 4])))]);
    assert!(wider.contains("blk.2.attn_qkv.weight"), "{wider}");
    let channels = of_key("rope.dimension_count_swa");
    assert!(refused(name, &[(&channels, uint(5))]).contains(&channels));
    let pattern = of_key("attention.sliding_window_pattern");
    assert!(refused(name, &[(&pattern, None)]).contains(&pattern));
}

#[test]
fn blocks_that_run_again_have_caches_of_their_own() {
    let (name, loops) = ("families/nanbeige-loop2", "nanbeige.num_loops");
    let counts = |pairs: &[(&str, Option<Value>)]| {
        let recipe = Recipe::new(&file(name, pairs), Some(64)).unwrap();
        let norms = of(&recipe.graph(1, Head::GREEDY).unwrap(), |op| matches!(op, Op::Norm(_)).then_some(())).len();
        (recipe.n_blocks(), recipe.states().unwrap().len(), recipe.weights().len(), norms)
    };
    let weights = counts(&[]).2;
    assert_eq!(counts(&[]), (6, 1 + 12, weights, 2 * (2 * 3 + 1)));
    assert_eq!(counts(&[(loops, None)]), (3, 1 + 6, weights, 2 * 3 + 1));
    assert_eq!(counts(&[(loops, uint(3))]), (9, 1 + 18, weights, 3 * (2 * 3 + 1)));
    let skipped = ("nanbeige.skip_loop_final_norm", Some(Value::Bool(true)));
    assert_eq!(counts(&[skipped]), (6, 1 + 12, weights, 2 * 2 * 3 + 1));
    assert!(refused(name, &[(loops, uint(1 << 20))]).contains(loops));
    assert!(refused("families/hrm_text-2x2", &[("hrm_text.hrm.h_cycles", uint(3))]).contains("block_count"));
}

/// Heading in `docs/families.md` of the names that are refused.
const REFUSED: &str = "## Names that are refused\n";

#[test]
fn every_architecture_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/families.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, after) = page.split_once(REFUSED).unwrap();
    let (section, after) = after.split_once("\n## ").unwrap();
    let words: Vec<&str> = [before, after]
        .iter()
        .flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))))
        .collect();
    let dense = dense::FAMILIES.iter().chain(dense::ENCODERS).map(|(name, _)| *name);
    let mut names: Vec<&str> = ARCHITECTURES.iter().chain(ENCODERS).map(|(name, _)| *name).chain(dense).collect();
    for name in &names {
        assert!(words.contains(name), "docs/families.md does not name {name}");
    }
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    assert!(
        readme.contains(&format!("[{} architectures]", names.len())),
        "README.md has another number than {}",
        names.len()
    );
    let rows = section.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    let refused: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(refused.len() > 20, "docs/families.md names {} that are refused", refused.len());
    for name in &refused {
        let error = Recipe::new(&file("gpt2-tiny", &[("general.architecture", text(name))]), Some(64));
        assert!(
            matches!(&error, Err(ModelError::Architecture { found, .. }) if found == name),
            "docs/families.md says that {name} is refused: {error:?}"
        );
    }
    let counts = format!("{} of the {} names", names.len(), names.len() + refused.len());
    assert!(before.contains(&counts), "docs/families.md does not say \"{counts}\"");
    names.extend(refused);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "names are unique");
}
