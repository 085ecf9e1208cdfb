//! Reference results of embedding models.

use std::rc::Rc;

use anygpu_model::{BytesSource, Embedder, Embedding, Gguf, Model, ModelError, Pooling, Recipe, Tokenizer};
use backend_api::Backend;
use backend_api::run::NativeHost;

use super::{block_on, floats, models, nmse, root};

#[derive(serde::Deserialize)]
struct Fixture {
    model: String,
    n_ctx: usize,
    tokens: Vec<u32>,
    embeddings: String,
    pooling: String,
    /// Pairs of texts, with the tokens and scores of a reranker.
    #[serde(default)]
    rank_cases: Vec<RankCase>,
}

#[derive(serde::Deserialize)]
struct RankCase {
    query: String,
    document: String,
    tokens: Vec<u32>,
    scores: Vec<f32>,
}

fn fixtures() -> Vec<Fixture> {
    serde_json::from_slice(&models("fixtures/embeddings.json")).unwrap()
}

/// Loads a model on a backend, with the pooling of its file or another one.
fn embedder(bytes: &[u8], n_ctx: usize, pooling: Option<Pooling>, backend: &Rc<dyn Backend>) -> Embedder {
    let recipe = Recipe::new(&Gguf::from_bytes(bytes).unwrap(), Some(n_ctx)).unwrap();
    let recipe = pooling.into_iter().fold(recipe, |recipe, pooling| recipe.with_pooling(pooling).unwrap());
    let (source, host) = (BytesSource(bytes), NativeHost::default());
    let model = block_on(Model::load(&source, recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
    Embedder::new(Rc::new(model)).unwrap()
}

fn embed(embedder: &mut Embedder, tokens: &[u32]) -> Embedding {
    block_on(embedder.embed(tokens, &NativeHost::default())).unwrap()
}

/// Returns the difference of two directions.
fn apart(found: &[f32], expected: &[f32]) -> f64 {
    let direction = |values: &[f32]| Embedding { values: values.to_vec(), width: values.len() }.normalized().values;
    nmse(&direction(found), &direction(expected))
}

/// Compares a tiny model's embedding with llama.cpp's, with any contents in the unused rows, and with each pooling.
pub fn embedding(name: &str, backend: &Rc<dyn Backend>) {
    let fixture = fixtures().into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    let expected = floats(&models(&format!("fixtures/{}", fixture.embeddings)));
    let bytes = models(&format!("fixtures/{}", fixture.model));
    let tokens = &fixture.tokens[..];

    let mut padded = embedder(&bytes, fixture.n_ctx, None, backend);
    let n_ctx = padded.model().recipe().sizes().n_ctx;
    assert_eq!(padded.pooling().name(), fixture.pooling);
    let found = embed(&mut padded, tokens);
    // Scores are what they are; of vectors, only the direction counts.
    let ranks = padded.pooling() == Pooling::Rank;
    let error = if ranks { nmse(&found.values, &expected) } else { apart(&found.values, &expected) };
    println!("{name}: NMSE {error:.1e}");
    assert!(error <= 1e-6, "{name}: NMSE {error:.2e}");

    // The history keeps the tokens of a longer text, so the unused rows of the short one are computed from them.
    let longer: Vec<u32> = tokens.iter().chain(tokens).rev().take(n_ctx).copied().collect();
    embed(&mut padded, &longer);
    let exact = embed(&mut embedder(&bytes, tokens.len(), None, backend), tokens);
    for (what, other) in [("after a longer text", embed(&mut padded, tokens)), ("in as many rows", exact)] {
        let error = nmse(&other.values, &found.values);
        assert!(error <= 1e-10, "{name} {what}: NMSE {error:.2e}");
    }
    let one = embed(&mut padded, &tokens[..1]);
    let exact = embed(&mut embedder(&bytes, 1, None, backend), &tokens[..1]);
    assert!(nmse(&one.values, &exact.values) <= 1e-10, "{name}: a text of one token");

    for RankCase { query, document, tokens, scores } in &fixture.rank_cases {
        let tokenizer = Tokenizer::from_metadata(&Gguf::from_bytes(&bytes).unwrap().metadata).unwrap();
        assert_eq!(&tokenizer.encode_pair(query, document), tokens, "{name}: {query:?} and {document:?}");
        let error = nmse(&embed(&mut padded, tokens).values, scores);
        assert!(error <= 1e-6, "{name}, {query:?} and {document:?}: NMSE {error:.2e}");
    }

    let rows = embed(&mut embedder(&bytes, fixture.n_ctx, Some(Pooling::None), backend), tokens);
    assert!(ranks || rows.width == found.width, "{name}");
    assert_eq!(rows.vectors().len(), tokens.len(), "{name}");
    let all: Vec<&[f32]> = rows.vectors().collect();
    let mean: Vec<f32> =
        (0..rows.width).map(|i| all.iter().map(|row| row[i]).sum::<f32>() / all.len() as f32).collect();
    let (first, last) = (all[0].to_vec(), all[all.len() - 1].to_vec());
    for (pooling, expected) in [(Pooling::Mean, mean), (Pooling::Cls, first), (Pooling::Last, last)] {
        let found = embed(&mut embedder(&bytes, fixture.n_ctx, Some(pooling), backend), tokens);
        let error = nmse(&found.values, &expected);
        assert!(error <= 1e-10, "{name} pooled by {pooling}: NMSE {error:.2e}");
    }

    let refused =
        |embedder: &mut Embedder, tokens: &[u32]| block_on(embedder.embed(tokens, &NativeHost::default())).unwrap_err();
    let too_long = vec![1; n_ctx + 1];
    assert!(matches!(refused(&mut padded, &too_long), ModelError::ContextFull { .. }));
    assert!(matches!(refused(&mut padded, &[]), ModelError::EmptyPrompt));
    assert!(matches!(refused(&mut padded, &[1 << 30]), ModelError::Token { .. }));
}

/// Tests encoders and rerankers as [`embedding`] does, and the pairs of texts of the latter.
pub fn encoders(backend: &Rc<dyn Backend>) {
    let names: Vec<String> = fixtures().into_iter().map(|fixture| fixture.model.replace(".gguf", "")).collect();
    let names = names.iter().filter(|name| name.starts_with("encoders/"));
    assert!(names.map(|name| embedding(name, backend)).count() > 5);
}

/// The embedding of a text does not depend on the text before, even with recurrent states.
pub fn embedding_again(name: &str, backend: &Rc<dyn Backend>) {
    let mut embedder = embedder(&models(&format!("fixtures/{name}.gguf")), 64, Some(Pooling::Last), backend);
    let first = embed(&mut embedder, &[22, 85, 1]);
    let other = embed(&mut embedder, &[14, 59, 92]);
    assert!(apart(&other.values, &first.values) > 1e-3, "{name}: two texts have one embedding");
    assert_eq!(embed(&mut embedder, &[22, 85, 1]), first, "{name}");
}

/// Tests all-MiniLM-L6-v2: the published tokens of texts, and embeddings with the direction of the exact ones.
pub fn minilm(backend: &Rc<dyn Backend>) {
    #[derive(serde::Deserialize)]
    struct Case {
        text: String,
        tokens: Vec<u32>,
        embedding: Vec<f32>,
    }
    let path = root().join("model/tests/data/minilm_l6_v2.json");
    let mut reference: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases: Vec<Case> = serde_json::from_value(reference["cases"].take()).unwrap();
    let bytes = models("cache/all-MiniLM-L6-v2.F32.gguf");
    let tokenizer = Tokenizer::from_metadata(&Gguf::from_bytes(&bytes).unwrap().metadata).unwrap();
    let mut embedder = embedder(&bytes, 512, None, backend);
    let mut least = 1.0f64;
    for Case { text, tokens, embedding } in &cases {
        assert_eq!(&tokenizer.encode(text, true, true), tokens, "{text:?}");
        // For vectors of length 1, the squared distance is twice the difference of the cosine to 1.
        let cosine = 1.0 - apart(&embed(&mut embedder, tokens).values, embedding) / 2.0;
        assert!(cosine >= 0.9999, "{text:?}: cosine {cosine}");
        least = least.min(cosine);
    }
    println!("MiniLM: the least cosine of {} texts is {least}", cases.len());
}
