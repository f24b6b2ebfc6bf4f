"""What the scripts that draw the pictures of doc/ have in common: SVG with text as text, readable on dark and on light ground."""
import sys
from xml.sax.saxutils import escape

SANS = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans CJK SC', sans-serif"
MONO = "ui-monospace, SFMono-Regular, 'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK SC', monospace"
LIGHT = {"ground": "#ffffff", "text": "#24292f", "faint": "#57606a", "a": "#0969da", "b": "#8c959f", "c": "#d4720b", "grid": "#d0d7de"}
DARK = {"ground": "#0d1117", "text": "#e6edf3", "faint": "#8b949e", "a": "#4493f8", "b": "#6e7681", "c": "#d98a3a", "grid": "#30363d"}


def rules(colours, drawn_as_lines):
    fills = " ".join(f".{name} {{ fill: {colour} }}" for name, colour in colours.items() if name != "grid")
    return f"{fills} .line {{ stroke: {colours['grid']} }}" + "".join(
        f" .{name}-line {{ fill: none; stroke: {colours[name]} }}" for name in drawn_as_lines)


def picture(width, height, parts, font=SANS, drawn_as_lines=()):
    """The whole file. drawn_as_lines: names of colours for which a class NAME-line is wanted."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="{font}">',
        "<style>", rules(LIGHT, drawn_as_lines), "@media (prefers-color-scheme: dark) {", rules(DARK, drawn_as_lines), "}", "</style>",
        f'<rect width="{width}" height="{height}" class="ground"/>', *parts, "</svg>", ""])


def text(x, y, words, size=13, shade="text", anchor="start", weight=400):
    return (f'<text x="{x:g}" y="{y:g}" class="{shade}" font-size="{size}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def rectangle(x, y, width, height, shade):
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" class="{shade}"/>'


def line(x1, y1, x2, y2, shade="line", more=""):
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" class="{shade}"{more}/>'


def put(path, drawn, is_check, how):
    """Writes a picture, or with is_check ends the program if the file is another. how: what draws it anew."""
    if not is_check:
        path.write_text(drawn, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{path.name}: is not what its source says: {how} draws it anew")
