//! Test of the built-in model's tokenizer against its reference file.

use anygpu_model::gguf::Gguf;
use anygpu_model::tokenizer::Tokenizer;

#[test]
fn tokens_and_text_equal_the_reference() {
    let gguf = Gguf::from_bytes(include_bytes!("../../models/gab-q4_0.gguf")).unwrap();
    assert_eq!(gguf.tensors.len(), 76);
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.add_bos()), (Some(0), Some(0), false));

    let reference: serde_json::Value = serde_json::from_str(include_str!("../../models/gab.reference.json")).unwrap();
    let cases = reference["files"]["gab-q4_0.gguf"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let ids = |key: &str| -> Vec<u32> { serde_json::from_value(case[key].clone()).unwrap() };
        let prompt = case["prompt"].as_str().unwrap();
        let encoded = tokenizer.encode(prompt, true, true);
        // The empty prompt stands for token 0.
        assert_eq!(if prompt.is_empty() { vec![0] } else { encoded }, ids("prompt_ids"), "{prompt:?}");

        let greedy = case["greedy_text"].as_str().unwrap();
        assert_eq!(tokenizer.decode(&ids("greedy_ids"), false), greedy);
        let (mut stream, mut streamed) = (tokenizer.stream(), String::new());
        ids("greedy_ids").into_iter().for_each(|id| stream.push(&tokenizer, id, &mut streamed));
        stream.finish(&mut streamed);
        assert_eq!(streamed, greedy);
    }
}
