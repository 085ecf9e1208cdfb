//! The backends and variants that the suite knows, as data: who opens them is the program around it.

use backend_api::Products;

/// A backend or variant of the suite.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// Its name in reports and on the command line.
    pub name: &'static str,
    /// Difference from the backend's default.
    pub about: &'static str,
    /// Backend to open.
    pub kind: Kind,
}

/// Backend to open, with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The CPU's plain definitions.
    Reference,
    /// The CPU's SIMD path, on an instruction set of this name, if not on the best of the machine.
    Cpu(Option<&'static str>),
    /// WebGPU.
    WebGpu(WebGpuVariant),
    /// WebGL2, natively GLES 3.
    WebGl(WebGlVariant),
}

/// How draws of WebGL are shaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebGlShape {
    /// As suits the device.
    Usual,
    /// As on a GPU.
    Gpu,
    /// As on a GPU that does not blend floats.
    NoBlend,
    /// As on a CPU, but in lines that are shorter than a group of weights.
    ShortLines,
}

/// How to open WebGL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebGlVariant {
    /// How dense tensors lie in textures, by name.
    pub layout: &'static str,
    /// Whether the device's extensions are hidden, as if it had none.
    pub bare: bool,
    /// The largest texture, if not the device's.
    pub max_texture_size: Option<u32>,
    /// How many textures one draw writes at most, if not as many as the device can.
    pub max_targets: Option<u32>,
    /// How draws are shaped.
    pub shape: WebGlShape,
}

/// How to open WebGPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebGpuVariant {
    /// The largest binding of weights, in bytes, if not the device's.
    pub max_binding: Option<u64>,
    /// Whether optional features of the device may be used.
    pub optional_features: bool,
    /// Precision of matmuls of several rows with quantised weights.
    pub products: Products,
    /// Whether kernels are shaped for software or for a GPU, if not for what the device is.
    pub as_software: Option<bool>,
}

/// WebGPU as users open it.
const USUAL: WebGpuVariant =
    WebGpuVariant { max_binding: None, optional_features: true, products: Products::F32, as_software: None };
/// The usual variant with the kernels of a GPU.
const AS_GPU: WebGpuVariant = WebGpuVariant { as_software: Some(false), ..USUAL };

/// WebGL as users open it.
const PACKED: WebGlVariant =
    WebGlVariant { layout: "packed", bare: false, max_texture_size: None, max_targets: None, shape: WebGlShape::Usual };

/// All of them.
pub const ALL: &[Variant] = &[
    Variant {
        name: "reference",
        about: "the plain definitions, which only cases from outside can judge",
        kind: Kind::Reference,
    },
    Variant { name: "cpu", about: "the SIMD path of the CPU, on its best instruction set", kind: Kind::Cpu(None) },
    Variant { name: "cpu-avx512", about: "the same on AVX-512", kind: Kind::Cpu(Some("avx512")) },
    Variant { name: "cpu-avx2", about: "the same on AVX2", kind: Kind::Cpu(Some("avx2")) },
    Variant { name: "cpu-neon", about: "the same on NEON", kind: Kind::Cpu(Some("neon")) },
    Variant { name: "cpu-portable", about: "the same on none in particular", kind: Kind::Cpu(Some("portable")) },
    Variant { name: "webgpu", about: "WebGPU", kind: Kind::WebGpu(USUAL) },
    Variant {
        name: "webgpu-core",
        about: "WebGPU without optional features of the device, shaped for a GPU, small matrices as large ones",
        kind: Kind::WebGpu(WebGpuVariant { optional_features: false, ..AS_GPU }),
    },
    Variant {
        name: "webgpu-split",
        about: "WebGPU whose bindings hold 20 KiB, so that weights are split, shaped for a GPU",
        kind: Kind::WebGpu(WebGpuVariant { max_binding: Some(20 * 1024), ..AS_GPU }),
    },
    Variant {
        name: "webgpu-software",
        about: "WebGPU shaped for a CPU",
        kind: Kind::WebGpu(WebGpuVariant { as_software: Some(true), ..USUAL }),
    },
    Variant {
        name: "webgpu-int8",
        about: "WebGPU whose products of several rows are in packed bytes, shaped for a GPU",
        kind: Kind::WebGpu(WebGpuVariant { products: Products::Int8, ..AS_GPU }),
    },
    Variant { name: "webgl", about: "WebGL2 or GLES 3, packed layout", kind: Kind::WebGl(PACKED) },
    Variant {
        name: "webgl-r32f",
        about: "the same, one value a texel, shaped for a GPU that does not blend floats",
        kind: Kind::WebGl(WebGlVariant { layout: "r32f", shape: WebGlShape::NoBlend, ..PACKED }),
    },
    Variant {
        name: "webgl-bits",
        about: "the bits of floats in integers, without any extension of the device, shaped for a GPU",
        kind: Kind::WebGl(WebGlVariant { layout: "bits", bare: true, shape: WebGlShape::Gpu, ..PACKED }),
    },
    Variant {
        name: "webgl-fold",
        about: "packed, in short lines of textures of 256 x 256, of which a draw writes 4, so that tensors are folded and layered",
        kind: Kind::WebGl(WebGlVariant {
            max_texture_size: Some(256),
            max_targets: Some(4),
            shape: WebGlShape::ShortLines,
            ..PACKED
        }),
    },
    Variant {
        name: "webgl-split",
        about: "packed, compact and with products in slices that are blended, as on a GPU",
        kind: Kind::WebGl(WebGlVariant { shape: WebGlShape::Gpu, ..PACKED }),
    },
];

/// The variant of a name.
///
/// *Errors*: there is none; all names are listed.
pub fn named(name: &str) -> Result<&'static Variant, String> {
    ALL.iter().find(|v| v.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|v| format!("{} ({})", v.name, v.about)).collect();
        format!("the suite knows no backend {name}; there are {}", names.join(", "))
    })
}
