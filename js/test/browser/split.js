// Takes a GGUF file apart and writes it in other ways, without interpreting it.

const BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const STRING = 8;
const ARRAY = 9;
/** Alignment of the data, in bytes. */
const ALIGNMENT = 32;

const aligned = (count) => Math.ceil(count / ALIGNMENT) * ALIGNMENT;

/** Reads a file field by field. */
class Reader {
  position = 8;

  constructor(bytes) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u32() {
    this.position += 4;
    return this.view.getUint32(this.position - 4, true);
  }

  u64() {
    return this.u32() + this.u32() * 2 ** 32;
  }

  string() {
    const length = this.u64();
    this.position += length;
  }

  value(kind) {
    if (kind === STRING) return this.string();
    if (kind !== ARRAY) return void (this.position += BYTES[kind]);
    const [each, count] = [this.u32(), this.u64()];
    for (let i = 0; i < count; i += 1) this.value(each);
  }
}

/** Parses a file into `{ pairs, metadata, tensors: [{ info, data }] }`. */
function parse(bytes) {
  const reader = new Reader(bytes);
  const [count, pairs] = [reader.u64(), reader.u64()];
  const start = reader.position;
  for (let i = 0; i < pairs; i += 1) {
    reader.string();
    reader.value(reader.u32());
  }
  const metadata = [bytes.subarray(start, reader.position)];
  const infos = Array.from({ length: count }, () => {
    const start = reader.position;
    reader.string();
    const dims = reader.u32();
    reader.position += 8 * dims + 4;
    return { info: bytes.subarray(start, reader.position), offset: reader.u64() };
  });
  const data = bytes.subarray(aligned(reader.position));
  const tensors = infos.map(({ info, offset }, i) => {
    const end = i + 1 < count ? infos[i + 1].offset : data.length;
    return { info, data: data.subarray(offset, end) };
  });
  return { pairs, metadata, tensors };
}

const u32 = (value) => new Uint8Array(Uint32Array.of(value).buffer);
const u64 = (value) => new Uint8Array(Uint32Array.of(value % 2 ** 32, Math.floor(value / 2 ** 32)).buffer);
const text = (value) => [u64(value.length), new TextEncoder().encode(value)];

/** Builds a file whose tensors begin after a gap of some bytes, which takes no memory. */
function file({ pairs, metadata, tensors }, name, gap = 0) {
  const header = [new TextEncoder().encode("GGUF"), u32(3), u64(tensors.length), u64(pairs), ...metadata];
  let offset = gap;
  const data = [];
  for (const tensor of tensors) {
    header.push(tensor.info, u64(offset));
    data.push(tensor.data, new Uint8Array(aligned(tensor.data.length) - tensor.data.length));
    offset += aligned(tensor.data.length);
  }
  const size = header.reduce((sum, part) => sum + part.length, 0);
  header.push(new Uint8Array(aligned(size) - size));
  return new File([...header, ...zeros(gap), ...data], name);
}

/** Returns blobs of zeros with this total length, most of them shared. */
function zeros(length) {
  const piece = new Blob([new Uint8Array(64 << 20)]);
  return [...new Array(Math.floor(length / piece.size)).fill(piece), piece.slice(0, length % piece.size)];
}

/** Returns a file with a gap, in bytes, before the data of its tensors. */
export const withGap = (bytes, gap) => file(parse(bytes), "gap.gguf", gap);

/**
 * Returns the files of a split model, as `gguf-split` makes them, with these numbers of tensors; the last one has the
 * rest.
 */
export function split(bytes, counts) {
  const { pairs, metadata, tensors } = parse(bytes);
  const starts = [0, ...counts.map((_, i) => counts.slice(0, i + 1).reduce((a, b) => a + b))];
  return starts.map((start, no) => {
    const own = [
      [...text("split.no"), u32(4), u32(no)],
      [...text("split.count"), u32(4), u32(starts.length)],
      [...text("split.tensors.count"), u32(5), u32(tensors.length)],
    ];
    const here = { pairs: own.length, metadata: own.flat(), tensors: tensors.slice(start, starts[no + 1]) };
    if (no === 0) Object.assign(here, { pairs: here.pairs + pairs, metadata: [...metadata, ...here.metadata] });
    const number = (value) => String(value).padStart(5, "0");
    return file(here, `m-${number(no + 1)}-of-${number(starts.length)}.gguf`);
  });
}
