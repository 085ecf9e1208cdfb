//! Drivers are set up as tests need them.

/// With threads of its own, Mesa's software GPU may damage the heap. `.cargo/config.toml` and `cargo xtask test` see to it that it
/// has none.
#[cfg(target_os = "linux")]
#[test]
fn software_gpus_have_no_threads_of_their_own() {
    use anygpu::native::block_on;

    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let skips = |name: &str| skip.split(',').any(|s| s.trim() == name);
    let webgl = (!skips("webgl")).then(|| backend_webgl::WebGl::open(backend_webgl::Options::default()).unwrap());
    let webgpu =
        (!skips("webgpu")).then(|| block_on(backend_webgpu::WebGpu::open(backend_webgpu::Options::default())).unwrap());
    if webgl.is_none() && webgpu.is_none() {
        return println!("SKIPPED: ANYGPU_SKIP names webgl and webgpu");
    }
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread of another test may end meanwhile.
    let names: Vec<String> =
        threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok()).collect();
    assert!(!names.is_empty() && !names.iter().any(|name| name.starts_with("llvmpipe")), "{names:?}");
}
