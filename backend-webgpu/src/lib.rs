//! The WebGPU compute backend: own kernels in WGSL on wgpu, natively (Vulkan, Metal, Direct3D 12) and in browsers.
//!
//! An operator is lowered (`lower`) to kernels, which are data: a file of `shaders/`, its variant, operands, parameters
//! and a grid. The assembler (`shader`) makes WGSL of them. A program holds everything that a step needs.
//!
//! Only core limits of WebGPU are needed, and no optional feature; subgroups are used where the device has them, and packed
//! integers where the user asks for them.
#![forbid(unsafe_code)]

mod backend;
mod fault;
mod kernel;
mod lower;
mod pipeline;
mod profile;
mod program;
mod read;
mod shader;
#[cfg(target_arch = "wasm32")]
mod staging;
mod storage;
mod subgroup;
#[doc(hidden)]
pub mod testing;
mod tuning;
mod watch;

#[cfg(test)]
mod tests;
#[cfg(target_arch = "wasm32")]
mod web;

use backend_api::Products;

pub use backend::WebGpu;
pub use shader::shader_files;
pub use tuning::Tuning;
pub use watch::Watched;
/// The version of wgpu that [`WebGpu::from_device`] takes devices from.
pub use wgpu;

/// How to open the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// *Units*: bytes. Packed weights are split so that no binding of theirs is larger (but for the 8 rows that cannot be
    /// split), even where the device allows more. For tests of devices with small limits.
    pub max_binding: Option<u64>,
    /// Whether optional features of the device may be used: subgroups by kernels, timestamps by profiles.
    pub optional_features: bool,
    /// Precision of matmuls of several rows with quantised weights. Bytes need the browser's
    /// `packed_4x8_integer_dot_product`; without it the backend does not open.
    pub products: Products,
    /// How kernels are shaped, if not as suits a device of its kind, GPU or software.
    pub tuning: Option<Tuning>,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_binding: None, optional_features: true, products: Products::F32, tuning: None }
    }
}
