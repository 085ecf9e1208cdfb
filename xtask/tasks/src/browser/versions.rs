//! Which old Chromium lies in which package: headless builds for x86-64 Linux.

/// An old Chromium.
#[derive(Debug, PartialEq, Eq)]
pub struct Version {
    /// Its major version.
    pub number: u32,
    /// The package and its version.
    pub package: &'static str,
    /// Digest of the package, as it is downloaded.
    pub sha256: &'static str,
    /// The folder beside the program where it looks for the libraries of its software GPU.
    pub libraries: &'static str,
    /// Flags that make it use them.
    pub flags: &'static [&'static str],
}

/// Up to 92 the software GPU is the library itself.
const DIRECT: &[&str] = &["--use-gl=swiftshader"];

/// From 103 on there is a layer between.
const ANGLE: &[&str] = &["--use-gl=angle", "--use-angle=swiftshader"];

/// Those that can be had, oldest first.
pub const VERSIONS: &[Version] = &[
    Version {
        number: 79,
        package: "chrome-aws-lambda@2.0.2",
        sha256: "287fd9947ca8e8256a1d8fcdea588d133632787d890f3137eef635f9a1809eac",
        libraries: "swiftshader",
        flags: DIRECT,
    },
    Version {
        number: 80,
        package: "chrome-aws-lambda@2.1.1",
        sha256: "94f8953cd47c3fbd9d0ba8f50d2e5aa4e8136ca52b37e2babcc12e43018ade77",
        libraries: "swiftshader",
        flags: DIRECT,
    },
    Version {
        number: 85,
        package: "chrome-aws-lambda@5.2.1",
        sha256: "4af9d2661e995315acecb2bac395c493397c90c7b9bd0cea8a7f3d8b77e5deae",
        libraries: "swiftshader",
        flags: DIRECT,
    },
    Version {
        number: 88,
        package: "chrome-aws-lambda@5.5.0",
        sha256: "19f14564f02d132b09fbe51f330525a886a3bb4fc9b80c662f427381c6bd5942",
        libraries: "swiftshader",
        flags: DIRECT,
    },
    Version {
        number: 91,
        package: "chrome-aws-lambda@9.1.0",
        sha256: "18d7c042802093f851a91e3b09fb417639ab4cfa33cc5a8ebbc92df7d15b0601",
        libraries: "swiftshader",
        flags: DIRECT,
    },
    Version {
        number: 92,
        package: "chrome-aws-lambda@10.1.0",
        sha256: "6745d06176d629be7021538a901a5a969f335c5a8c10a581b40862e7ed66996e",
        libraries: "swiftshader",
        flags: DIRECT,
    },
    Version {
        number: 103,
        package: "@sparticuz/chromium@103.0.0",
        sha256: "88f1af268022584ffd0e4b58a68c8bd63b55f247b7c84481c719f362fb2be43a",
        libraries: "",
        flags: ANGLE,
    },
    Version {
        number: 110,
        package: "@sparticuz/chromium@110.0.1",
        sha256: "10f2e23dcab732f0908bebaa85c2876d1b5e176c1680b1b36652ecd7d3070840",
        libraries: "",
        flags: ANGLE,
    },
    Version {
        number: 116,
        package: "@sparticuz/chromium@116.0.0",
        sha256: "f2dade4746a99acd12a627f60b9e9108511bedb5c80c111c1f373939d958dcad",
        libraries: "",
        flags: ANGLE,
    },
];
