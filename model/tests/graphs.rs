//! Tests of the graphs that architectures record, node by node: backends match fusion patterns by the order and form of
//! nodes.

use anygpu_model::arch::{BEST, CHOSEN, HIDDEN_IN, HIDDEN_OUT, HISTORY, LOGITS, PROBABILITIES};
use anygpu_model::{Gguf, Head, OutputRows, Recipe, Stage, TokenChoice};
use backend_api::op::{Index, Op};
use backend_api::{Graph, Kind};

fn path(folder: &str, file: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(file)
}

fn recipe(file: &str) -> Recipe {
    let bytes = std::fs::read(path("../models", &format!("{file}.gguf"))).unwrap();
    Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), None).unwrap()
}

/// Graphs of four rows with a greedy token are unchanged since the GPU backends' fusion patterns were written.
#[test]
fn gpt2_and_llama_stay_as_they_are() {
    for file in ["gab-q4_0", "fixtures/llama-gqa-tied"] {
        let recipe = recipe(file);
        let name = file.rsplit('/').next().unwrap();
        let stored = std::fs::read_to_string(path("tests/data/graphs", &format!("{name}.txt"))).unwrap();
        assert!(stored.lines().count() > 50);
        assert_eq!(recipe.graph(4, Head::GREEDY).unwrap().to_string(), stored, "{name}");

        let kept = recipe.graph(4, Head::NONE).unwrap();
        assert!(stored.starts_with(&kept.to_string()), "{name}: a graph without a head is the beginning of one with");
        let names: Vec<&str> = kept.nodes().iter().map(|node| node.op.name()).collect();
        assert!(names.ends_with(&["append", "append"]), "{name}");
        assert_eq!(names.iter().filter(|name| **name == "append").count(), 2 * recipe.n_blocks(), "{name}");
    }
}

/// After the last block's attention, only the needed row is computed.
#[test]
fn only_wanted_rows_are_computed() {
    let last = |graph: &Graph| {
        let wanted = |node: &&backend_api::Node| matches!(&node.op, Op::GetRows(op) if op.index == Index::Last);
        graph.nodes().iter().filter(wanted).count()
    };
    for file in [
        "gpt2-tiny",
        "llama-gqa-tied",
        "qwen2-bias",
        "qwen3-d32",
        "gemma3-swa",
        "phi3-4k",
        "olmo2-tiny",
        "granite-scales",
    ] {
        let recipe = recipe(&format!("fixtures/{file}"));
        let n_blocks = recipe.n_blocks();
        assert_eq!(last(&recipe.graph(4, Head::LOGITS).unwrap()), 2, "{file}");
        assert_eq!(last(&recipe.graph(1, Head::LOGITS).unwrap()), 0, "{file}");
        assert_eq!(last(&recipe.graph(4, Head::LOGITS.of_all_rows()).unwrap()), 0, "{file}");
        let head = recipe.with_stage(Stage { embed: false, blocks: n_blocks..n_blocks, head: true }).unwrap();
        assert_eq!(last(&head.graph(4, Head::LOGITS).unwrap()), 1, "{file}");
        assert_eq!(last(&head.graph(4, Head::LOGITS.of_all_rows()).unwrap()), 0, "{file}");
    }
}

/// Returns the nodes of a model's second block.
fn second_block(file: &str) -> Vec<String> {
    let stage = Stage { embed: false, blocks: 1..2, head: false };
    let graph = recipe(&format!("fixtures/{file}")).with_stage(stage).unwrap().graph(4, Head::GREEDY).unwrap();
    let named = |tensors: &mut dyn Iterator<Item = &backend_api::Tensor>| -> Vec<String> {
        tensors.filter(|t| t.kind != Kind::Temporary).map(|t| t.name.replace("blk.1.", "")).collect()
    };
    let nodes = graph.nodes().iter();
    nodes.map(|n| [vec![n.op.name().into()], named(&mut graph.operands(n).into_iter())].concat().join(" ")).collect()
}

#[test]
fn queries_and_keys_are_normed_before_they_rotate() {
    let qkv = ["norm hidden_in attn_norm.weight", "matmul attn_qkv.weight", "slice", "slice", "slice"];
    let normed = ["norm attn_q_norm.weight", "norm attn_k_norm.weight"];
    let gate_up = ["norm ffn_norm.weight", "matmul ffn_gate_up.weight", "slice", "slice", "glu"];
    let rotated = |table: &'static str| [table, table, "append k_cache", "append v_cache", "attention k_cache v_cache"];
    let plain: Vec<&str> = [
        &qkv[..],
        &normed,
        &rotated("rope rope_table"),
        &["matmul attn_output.weight", "binary hidden_in"],
        &gate_up,
        &["matmul ffn_down.weight", "binary"],
    ]
    .concat();
    assert_eq!(second_block("qwen3-d32"), plain);
    let post_normed: Vec<&str> = [
        &qkv[..],
        &normed,
        &rotated("rope rope_table_swa"),
        &["matmul attn_output.weight", "norm post_attention_norm.weight", "binary hidden_in"],
        &gate_up,
        &["matmul ffn_down.weight", "norm post_ffw_norm.weight", "binary"],
    ]
    .concat();
    assert_eq!(second_block("gemma3-swa"), post_normed);
}

/// Of seven blocks, the sixth has full attention, with the other base.
#[test]
fn gemma3_alternates_windows_and_bases() {
    let graph = recipe("fixtures/gemma3-swa").graph(1, Head::GREEDY).unwrap();
    let windows = graph.nodes().iter().filter_map(|node| match &node.op {
        Op::Attention(op) => Some(op.masking.window),
        _ => None,
    });
    assert_eq!(windows.collect::<Vec<_>>(), [4, 4, 4, 4, 4, 0, 4]);
    let tables = graph.nodes().iter().filter(|node| matches!(node.op, Op::Rope(_)));
    let tables: Vec<&str> = tables.map(|node| graph.tensor(node.inputs[1]).name.as_str()).collect();
    let (local, global) = ("rope_table_swa", "rope_table");
    assert_eq!(tables, [[local; 10].as_slice(), &[global; 2], &[local; 2]].concat());
}

#[test]
fn stages_take_and_give_what_is_theirs() {
    let stage = |embed, blocks, head| Stage { embed, blocks, head };
    let externals = |stage: Stage, head| {
        let recipe = recipe("fixtures/llama-gqa-tied").with_stage(stage).unwrap();
        let graph = recipe.graph(4, head).unwrap();
        let others = graph.externals().filter(|(_, t)| t.kind != Kind::Weight && !t.name.contains("_cache"));
        others.map(|(_, t)| t.name.clone()).collect::<Vec<_>>()
    };
    for head in [Head::NONE, Head::GREEDY, Head::LOGITS.of_all_rows()] {
        assert_eq!(externals(stage(true, 0..0, false), head), [HISTORY, HIDDEN_OUT]);
        assert_eq!(externals(stage(true, 0..1, false), head), [HISTORY, HIDDEN_OUT]);
        assert_eq!(externals(stage(false, 1..2, false), head), [HIDDEN_IN, HIDDEN_OUT]);
    }
    assert_eq!(externals(stage(false, 1..3, true), Head::GREEDY), [HIDDEN_IN, HISTORY]);
    assert_eq!(externals(stage(false, 1..3, true), Head::LOGITS), [HIDDEN_IN, LOGITS]);
    assert_eq!(externals(stage(false, 1..3, true), Head::NONE), [HIDDEN_IN]);
    assert_eq!(externals(stage(false, 1..3, false), Head::NONE), [HIDDEN_IN]);
    assert_eq!(externals(stage(true, 0..3, true), Head::GREEDY), [HISTORY]);

    let states = recipe("fixtures/llama-gqa-tied").with_stage(stage(false, 1..2, false)).unwrap().states().unwrap();
    let states: Vec<_> = states.iter().map(|s| (s.name.as_str(), s.shape.as_slice())).collect();
    assert_eq!(states, [("blk.1.k_cache", &[256, 32][..]), ("blk.1.v_cache", &[256, 32])]);
}

/// Each output of a head has the rows that the head asks for, whatever other outputs there are.
#[test]
fn outputs_of_a_head_are_independent() {
    let recipe = recipe("fixtures/llama-gqa-tied");
    let n_vocab = recipe.sizes().n_vocab;
    for (rows, count) in [(OutputRows::Last, 1), (OutputRows::All, 4)] {
        for number in 0..16 {
            let is_set = |bit: u32| number >> bit & 1 == 1;
            let token = Some(TokenChoice { sample: is_set(0), adjust: is_set(1) });
            let head = Head { rows, token, log_probs: is_set(2), logits: is_set(3), embedding: false };
            let graph = recipe.graph(4, head).unwrap();
            let outputs = graph.externals().filter(|(_, tensor)| tensor.kind == Kind::Output);
            let mut found: Vec<_> = outputs.map(|(_, t)| (t.name.as_str(), t.shape.rows(), t.shape.cols())).collect();
            let mut expected = Vec::new();
            expected.extend(head.logits.then_some((LOGITS, count, n_vocab)));
            expected.extend(head.log_probs.then_some((PROBABILITIES, count, 21)));
            expected.extend(head.log_probs.then_some((BEST, count, 20)));
            // Shape [4]: a row of four columns.
            expected.extend((rows == OutputRows::All).then_some((CHOSEN, 1, 4)));
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{head:?}");
        }
    }
    let refused = |head, sequences| recipe.graph_of_sequences(2, head, 64, sequences).unwrap_err().to_string();
    assert!(refused(Head::LOGITS, 2).contains("ask for a token"));
    assert!(refused(Head::GREEDY.of_all_rows(), 2).contains("ask for a token"));
    assert!(refused(Head::GREEDY, 1).contains("two or more"));
}

#[test]
fn stages_that_cannot_be_are_refused() {
    let refused = |embed, blocks, head| {
        let stage = Stage { embed, blocks, head };
        recipe("fixtures/llama-gqa-tied").with_stage(stage).unwrap_err().to_string()
    };
    assert!(refused(true, 0..4, false).contains("0..4 are not among the model's 3"));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = 2..1;
    assert!(refused(false, reversed, false).contains("2..1 are not among"));
    assert!(refused(true, 1..2, false).contains("begin with block 0"));
    assert!(refused(false, 1..2, true).contains("end with block 3"));
    assert!(refused(false, 1..1, false).contains("nothing to do"));
    let head = recipe("fixtures/llama-gqa-tied").with_stage(Stage { embed: false, blocks: 3..3, head: true }).unwrap();
    assert!(head.graph(4, Head::NONE).unwrap_err().to_string().contains("another head"));
}

/// Pages prove their backend by the cases of operators that models record, and by no others.
#[test]
fn operators_of_models_have_cases_that_pages_have() {
    let known: std::collections::BTreeSet<&str> = backend_api::cases::of_models().iter().map(|case| case.op).collect();
    let mut seen = 0;
    for folder in ["../models/fixtures", "../models/fixtures/families"] {
        for entry in std::fs::read_dir(path(folder, "")).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_none_or(|extension| extension != "gguf") {
                continue;
            }
            let recipe = Recipe::new(&Gguf::from_bytes(&std::fs::read(&file).unwrap()).unwrap(), None).unwrap();
            for node in recipe.graph(4, recipe.head()).unwrap().nodes() {
                assert!(known.contains(node.op.name()), "{} of {}", node.op.name(), file.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 90, "{seen} files");
}
