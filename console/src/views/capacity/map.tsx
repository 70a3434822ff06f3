// The map itself: a canvas that mouse, touch and keyboard can use. A screen reader hears the cell
// that is selected; the table below the map has the sums.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocale } from "../../text";
import type { Columns, Group, Usage } from "./columns";
import { cellAt, LABEL, layoutOf, moved } from "./layout";
import { type Measure, paint } from "./paint";

/** The map takes at most this share of the window's height, as long as cells have room. */
const SHARE = 0.75;

export interface MapProps {
  columns: Columns;
  usage: Usage;
  groups: Group[];
  measure: Measure;
  selected: string;
  open: (host: string) => void;
}

export function HostMap(props: MapProps) {
  const { text, percent } = useLocale();
  const { columns, usage, groups, measure, selected } = props;
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [cell, setCell] = useState(-1);
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => observer.disconnect();
  }, []);
  const layout = useMemo(
    () => layoutOf(groups, Math.max(1, width), innerHeight * SHARE),
    [groups, width],
  );
  const ratio = Math.min(2, Math.max(1, Math.round(devicePixelRatio)));
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context === null || context === undefined || width === 0) return;
    draw(context, ratio, layout, usage, columns.up, measure);
  }, [layout, usage, columns, measure, ratio]);
  useEffect(() => {
    const host = columns.names.indexOf(selected);
    setCell(host === -1 ? -1 : layout.hosts.indexOf(host));
  }, [selected, layout, columns]);

  const host = cell === -1 ? -1 : (layout.hosts[cell] ?? -1);
  const words =
    host === -1
      ? ""
      : text.capacity.cell(
          columns.names[host] ?? "",
          columns.zones[host] ?? "",
          percent(usage.normal[host] ?? 0),
          percent(usage.full[host] ?? 0),
        );
  const point = (event: MouseEvent): number =>
    cellAt(layout, groups, event.offsetX, event.offsetY);
  const openCell = (at: number): void => {
    const name = columns.names[layout.hosts[at] ?? -1];
    if (name !== undefined) props.open(name);
  };
  return (
    <div class="map" ref={place}>
      <canvas
        ref={canvas}
        width={width * ratio}
        height={layout.height * ratio}
        tabIndex={0}
        role="application"
        aria-label={`${text.capacity.map}. ${text.capacity.mapHint}`}
        aria-describedby="map-cell"
        onMouseMove={(event) => setCell(point(event))}
        onClick={(event) => openCell(point(event))}
        onFocus={() => setCell((cell) => (cell === -1 ? 0 : cell))}
        onKeyDown={(event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            openCell(cell);
            return;
          }
          const next = moved(layout, cell, event.key);
          if (next !== cell) {
            event.preventDefault();
            setCell(next);
          }
        }}
      />
      {groups.map((group, index) => (
        <span
          key={group.name}
          class="group-name"
          style={{ top: `${(layout.tops[index] ?? LABEL) - LABEL}px` }}
        >
          <strong>{group.name}</strong> {text.capacity.hosts(group.hosts.length)}
        </span>
      ))}
      {cell >= 0 && cell < layout.hosts.length && (
        <span
          class="cursor"
          aria-hidden="true"
          style={{
            left: `${layout.x[cell]}px`,
            top: `${layout.y[cell]}px`,
            width: `${layout.cell}px`,
            height: `${layout.cell}px`,
          }}
        />
      )}
      <p id="map-cell" class="cell-words" aria-live="polite">
        {words}
      </p>
    </div>
  );
}

/** One frame. The browser's user timing has the time of each as `ebbtide:map`. */
function draw(
  context: CanvasRenderingContext2D,
  ratio: number,
  layout: ReturnType<typeof layoutOf>,
  usage: Usage,
  up: Uint8Array,
  measure: Measure,
): void {
  const started = performance.now();
  const { width, height } = context.canvas;
  if (width === 0 || height === 0) return;
  const image = imageOf(context, width, height);
  paint(new Uint32Array(image.data.buffer), width, ratio, layout, usage, up, measure);
  context.putImageData(image, 0, 0);
  performance.clearMeasures("ebbtide:map");
  performance.measure("ebbtide:map", { start: started, end: performance.now() });
}

let kept: ImageData | null = null;

/** The buffer of the last frame, if it has the same size. */
function imageOf(context: CanvasRenderingContext2D, width: number, height: number): ImageData {
  if (kept === null || kept.width !== width || kept.height !== height) {
    kept = context.createImageData(width, height);
  }
  return kept;
}
