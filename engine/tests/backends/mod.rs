//! Backends on which small models are run.

use anygpu::native::block_on;
use backend_api::{Backend, Error};

type Opened = Result<Box<dyn Backend>, Error>;

/// Opens the backends of this machine, except for those that the environment variable `ANYGPU_SKIP` names.
pub fn backends() -> Vec<(&'static str, Box<dyn Backend>)> {
    let gl = |layout| backend_webgl::WebGl::open(backend_webgl::Options { layout, ..Default::default() });
    let boxed = |backend| Box::new(backend) as Box<dyn Backend>;
    let gpu: Result<_, Error> = block_on(backend_webgpu::WebGpu::open(Default::default()));
    let all: [(&str, Opened); 6] = [
        ("cpu", Ok(Box::new(reference_cpu::Cpu::new(Default::default())))),
        (
            "reference",
            Ok(Box::new(reference_cpu::Cpu::new(reference_cpu::Options { fast: false, ..Default::default() }))),
        ),
        ("webgpu", gpu.map(|backend| Box::new(backend) as Box<dyn Backend>)),
        ("webgl packed", gl(backend_webgl::Layout::Packed).map(boxed)),
        ("webgl r32f", gl(backend_webgl::Layout::R32f).map(boxed)),
        ("webgl bits", gl(backend_webgl::Layout::Bits).map(boxed)),
    ];
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let named = |name: &str| skip.split(',').any(|s| !s.trim().is_empty() && name.starts_with(s.trim()));
    let (skipped, asked): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| named(name));
    skipped.iter().for_each(|(name, _)| println!("SKIPPED: ANYGPU_SKIP names {name}"));
    asked.into_iter().map(|(name, backend)| (name, backend.unwrap_or_else(|e| panic!("{name}: {e}")))).collect()
}
