// The style sheet of the report: light or dark as the reader's system prefers, one column on a phone.
#pragma once

namespace capstan {

/// Line colours are those of Okabe and Ito, distinguishable with every kind of colour blindness;
/// every six lines the dash pattern changes.
constexpr const char* report_style = R"(
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--soft:#57606a;--rule:#d8dee4;--panel:#f6f8fa;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#56b4e9;--c5:#e69f00}
@media(prefers-color-scheme:dark){:root{--ground:#14171b;--ink:#e3e6ea;--soft:#9aa4af;--rule:#333a42;--panel:#1c2126;
--c0:#3d9bd9;--c1:#f0772b;--c2:#2fc095;--c3:#dc96bd;--c4:#8fd0f5;--c5:#f2b632}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:16px;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,"Liberation Sans",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.2em;margin:1.6em 0 .5em;border-bottom:1px solid var(--rule)}
h3{font-size:1.05em;margin:1.4em 0 .3em}h4{font-size:.95em;margin:.9em 0 .3em;color:var(--soft)}
small,.scale{color:var(--soft)}
ul.legend{list-style:none;padding:0;margin:.4em 0;display:flex;flex-wrap:wrap;gap:.2em 1.4em}
ul.legend li{max-width:100%}
.sample{width:28px;height:10px;margin-right:.5em;vertical-align:middle;flex:none}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:8px 20px}
figure{margin:0;min-width:0}figcaption{font-weight:600}figcaption small{font-weight:400}
.chart svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font:13px system-ui,"Liberation Sans",sans-serif}
svg .end{text-anchor:end}svg .middle{text-anchor:middle}
svg .grid{stroke:var(--rule)}svg .axis{stroke:var(--soft)}
svg path{fill:none;stroke:currentColor;stroke-linejoin:round}svg circle{fill:currentColor}
svg .thin path{stroke-width:1.2;stroke-opacity:.65}svg .marked path{stroke-width:2.4}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}.c5{color:var(--c5)}
.d1 path{stroke-dasharray:7 3}.d2 path{stroke-dasharray:2 3}.d3 path{stroke-dasharray:9 3 2 3}
.wide{overflow-x:auto;margin:.4em 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.93em}
th,td{padding:.25em .6em;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:12em;max-width:24em}
td.key{white-space:normal;min-width:4em;max-width:16em}
thead th{background:var(--panel);vertical-align:bottom}
.confusion th.column span{writing-mode:vertical-rl;transform:rotate(180deg);max-height:10em;overflow:hidden;
text-overflow:ellipsis;white-space:nowrap}
.confusion th.corner{font-weight:400;color:var(--soft)}
.confusion td{min-width:3.2em}
.confusion td.right{background:rgb(33 113 200/calc(var(--share)*.85))}
.confusion td.wrong{background:rgb(230 97 1/calc(var(--share)*.85))}
.confusion td.strong{color:#fff}
details{margin:.5em 0;padding:.3em .8em;background:var(--panel);border-radius:6px}
summary{cursor:pointer;font-weight:600}
.maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,240px),1fr));gap:8px}
.map svg{display:block;width:100%;max-width:300px;height:auto}
.map image{image-rendering:pixelated}.map .frame{fill:none;stroke:var(--rule)}
.map figcaption{font-weight:400;font-size:.9em;color:var(--soft)}
.bar{display:inline-block;width:9em;height:.8em;margin:0 .5em;border:1px solid var(--rule);vertical-align:middle}
.bar.one{background:linear-gradient(90deg,transparent,rgb(230 97 1))}
.bar.two{background:linear-gradient(90deg,rgb(33 113 200),transparent,rgb(230 97 1))}
.words{margin:.3em 0}
.words span{background:rgb(230 97 1/calc(var(--share)*.75));border-radius:3px}
.words small{margin-left:.6em;white-space:normal}
.example q{white-space:pre-wrap}
@media(max-width:600px){.chart svg text{font-size:16px}td,th{padding:.25em .4em}}
.note{border-left:3px solid var(--c5);padding-left:.7em;color:var(--soft)}
)";

}  // namespace capstan
