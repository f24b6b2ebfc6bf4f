/* Shows what loadline-exporter writes into data.js. A table has a column for each key of its rows, so a new key needs nothing here: the end of
 * a key is its unit. Texts of others come into the page as texts, never as HTML. */
'use strict';

const chinese = {
	'GPUs of': 'GPU 主机：', 'as of': '截至', 'written by loadline': '由 loadline 写入，版本', 'Cards': '卡', 'Tenants': '租户',
	'Who uses what of whom': '谁在用谁的份额', 'Jobs on the cards': '卡上的作业', 'Queue': '队列', 'Reservations, maintenance, drained cards': '预留、维护和停用的卡',
	'Decisions': '决策', 'none': '无', 'in use': '使用率', 'memory': '显存', 'synthetic load': '合成负载', 'lost': '丢失', 'drained': '停止分配',
	'fault': '故障', 'idle for': '空闲', 'the last day': '最近一天', 'mean use': '平均使用率', 'of which synthetic': '其中合成负载', 'no history yet': '还没有历史记录',
	'in use by work': '工作使用', 'Show command lines': '显示命令行', 'card': '卡', 'cards': '卡', 'card count': '卡数', 'tenant': '租户', 'group': '卡组',
	'weight': '权重', 'guaranteed cards': '保障的卡', 'used cards': '已申请卡', 'limit cards': '卡上限', 'guaranteed memory': '保障的显存', 'used memory': '已申请显存',
	'limit memory': '显存上限', 'guaranteed compute': '保障的算力', 'used compute': '已申请算力', 'limit compute': '算力上限', 'running': '运行中', 'waiting': '等待中',
	'gpu': 'GPU 时间', 'job': '作业', 'user': '用户', 'name': '名称', 'memory limit': '显存上限', 'away': '已移出卡', 'share': '近期份额', 'compute limit': '算力上限',
	'class': '等级', 'by': '方式', 'command': '命令', 'number': '编号', 'position': '位置', 'state': '状态', 'compute': '算力', 'since': '自', 'start': '预计开始', 'end': '预计结束',
	'why': '原因', 'reason': '原因', 'from': '从', 'to': '到', 'at': '时间', 'gain': '收益', 'held': '暂缓低等级的时间', 'slice ms': '时间片（毫秒）', 'jobs': '作业数',
	'borrower': '借用者', 'beyond its guarantee': '超出保障的部分', 'of': '来自', 'room of no guarantee': '未作保障的余量', 'starting': '启动中', 'paused': '暂停',
	'after': '等待另一作业', 'high': '高', 'normal': '普通', 'low': '低', 'alone': '独占', 'slices': '时间片', 'visits': '轮流', 'space': '空间', 'windows': '时间窗', 'classes': '等级',
	'hold': '合成负载', 'no_reason': '没有轮流的理由', 'not_measured': '尚未测量', 'measures': '正在测量', 'pays': '测得轮流更好', 'pays_not': '测得轮流不更好',
	'too_deep': '排队的工作太多，无法测量', 'too_many': '作业太多，无法测量', 'operator': '由操作员', 's': '秒', 'min': '分', 'h': '小时', 'd': '天',
	'user-limit': '达到每个用户的上限', 'tenant-limit': '达到租户的上限', 'guarantee': '为他人的保障保留', 'room': '没有空位', 'reserved': '已预留', 'out-of-use': '卡停用',
	'order': '会推迟排在前面的作业', 'high-class': '高等级只能用于保障之内',
	'The data are old: they were written {0} ago. Has loadline-exporter stopped?': '数据已过时：写入于 {0} 之前。loadline-exporter 停止了吗？',
	'The clock of this computer is {0} behind the machine\'s.': '本机时钟比服务器慢 {0}。', 'data.js cannot be read.': '无法读取 data.js。',
	'loadlined does not reply: {0}': 'loadlined 没有应答：{0}', 'The sensor is silent: the cards are not known.': '传感器没有消息：卡状态未知。',
	'Jobs of others are hidden by the configuration.': '配置隐藏了其他人的作业。', 'no tenant': '无租户',
};
const words = {'used cards': 'cards asked for', 'used memory': 'memory asked for', 'used compute': 'compute asked for', 'limit cards': 'card limit', 'limit memory': 'memory limit',
	'limit compute': 'compute limit', 'gpu': 'GPU time', 'away': 'off the card', 'held': 'lower classes held', 'slice ms': 'slice (ms)', 'card count': 'cards wanted',
	'user-limit': 'limit of each user', 'tenant-limit': 'limit of the tenant', 'guarantee': 'kept for a guarantee', 'room': 'no room', 'reserved': 'reserved',
	'out-of-use': 'cards out of use', 'order': 'would put off an earlier job', 'high-class': 'class high is for the guarantee alone', 'no_reason': 'no reason for visits',
	'not_measured': 'not measured yet', 'measures': 'is being measured', 'pays': 'visits were measured to pay', 'pays_not': 'visits were measured not to pay',
	'too_deep': 'too much is queued to measure', 'too_many': 'too many jobs to measure'};
const isChinese = (navigator.language || '').toLowerCase().startsWith('zh');
const say = (text, ...values) => ((isChinese && chinese[text]) || words[text] || text).replace(/\{(\d)\}/g, (all, i) => values[i]);
/* Names of users, tenants, jobs and commands are not words of ours, whatever they are. */
const isName = /^(tenant|user|name|group|command|of|borrower)$/;

function make(tag, attributes, ...children) {
	const space = tag === 'svg' || tag === 'rect' ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml';
	const element = document.createElementNS(space, tag);
	for (const [name, value] of Object.entries(attributes || {}))
		element.setAttribute(name, value);
	element.append(...children);
	return element;
}

/* ---- values ---- */

const known = value => value !== null && value !== undefined && !(Array.isArray(value) && !value.length);
const bytes = value => value >= 2 ** 30 ? `${+(value / 2 ** 30).toFixed(1)} GiB` : `${Math.round(value / 2 ** 20)} MiB`;

function span(seconds) {
	for (const [unit, length] of [['d', 86400], ['h', 3600], ['min', 60]])
		if (seconds >= 2 * length)
			return `${Math.floor(seconds / length)} ${say(unit)}`;
	return `${Math.max(Math.floor(seconds), 0)} ${say('s')}`;
}

function moment(seconds) {
	const at = new Date(seconds * 1000), isToday = at.toDateString() === new Date().toDateString();
	return at.toLocaleString(isChinese ? 'zh-CN' : [], isToday ? {timeStyle: 'medium'} : {month: 'numeric', day: 'numeric', hour: 'numeric', minute: '2-digit'});
}

const moments = /^(at|since|start|end|from|to)$/;

function cell(key, value) {
	if (!known(value))
		return '-';
	if (key.endsWith('_bytes'))
		return bytes(value);
	if (key.endsWith('_percent'))
		return `${value}\u00a0%`;
	if (key.endsWith('_seconds'))
		return span(value);
	if (moments.test(key) && typeof value === 'number')
		return moment(value);
	if (Array.isArray(value))
		return value.map(item => cell('', item)).join(', ');
	if (typeof value === 'object') /* why a job waits */
		return [say(value.rule === 'high' ? 'high-class' : value.rule), value.of, value.cards, value.job && `${say('job')} ${value.job}`].filter(Boolean).join(': ');
	return isName.test(key) ? String(value) : say(String(value));
}

const heading = key => say(key.replace(/_(bytes|percent|seconds)$/, '').replace(/_/g, ' '));

/* ---- parts ---- */

let showsCommands = false;

function table(title, rows) {
	const keys = [...new Set(rows.flatMap(Object.keys))].filter(key => (key !== 'command' || showsCommands) && rows.some(row => known(row[key])));
	if (!rows.length)
		return make('p', {class: 'quiet'}, say('none'));
	const isNumber = key => !moments.test(key) && rows.every(row => !known(row[key]) || typeof row[key] === 'number');
	const kind = key => isNumber(key) ? 'number' : key === 'why' || key === 'command' ? 'text' : '';
	return make('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': title}, make('table', {},
		make('thead', {}, make('tr', {}, ...keys.map(key => make('th', {scope: 'col', class: kind(key)}, heading(key))))),
		make('tbody', {}, ...rows.map(row => make('tr', {}, ...keys.map(key => make('td', {class: kind(key)}, cell(key, row[key]))))))));
}

const section = (title, ...children) => make('section', {}, make('h2', {}, say(title)), ...children);

function bar(label, parts, text) {
	let x = 0;
	const fills = parts.map(([kind, percent]) => {
		const fill = make('rect', {class: `${kind}-fill`, x, width: Math.min(percent, 100 - x), height: 10});
		x += percent;
		return fill;
	});
	return make('div', {class: 'bar'}, make('span', {}, say(label)),
		make('svg', {viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, ...fills), make('span', {}, text));
}

let charts = [];

/* The synthetic part of the use is drawn over it, in its own colour. */
function chart(holder, history, uuid) {
	const card = history.cards[uuid], length = card ? Math.max(...Object.values(card).map(values => values.length)) : 0;
	if (!length) {
		holder.append(make('p', {class: 'quiet'}, say('no history yet')));
		return;
	}
	const padded = values => [...Array(length - values.length).fill(null), ...values];
	const times = Array.from({length}, (_, i) => history.end - (length - i) * history.step);
	const use = padded(card.util), synthetic = padded(card.synthetic).map((value, i) => value && use[i] !== null ? value : null);
	const sum = values => values.reduce((total, value) => total + value, 0), seen = use.filter(known).length;
	const mean = values => seen ? `${Math.round(sum(values) / seen)}\u00a0%` : '-';
	const told = `${say('the last day')}: ${say('mean use')} ${mean(use)}` + (sum(synthetic) ? `, ${say('of which synthetic')} ${mean(synthetic)}` : '');
	const color = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
	const axis = {stroke: color('quiet'), grid: {stroke: color('line')}, ticks: {stroke: color('line')}, font: '12px system-ui'};
	const line = (name, fill) => ({stroke: color(name), fill: fill && color(name) + '66', width: 1.5, points: {show: false}});
	const box = make('div', {role: 'img', 'aria-label': told});
	holder.append(box, make('p', {class: 'quiet'}, told));
	charts.push(new uPlot({
		width: Math.max(holder.clientWidth - 26, 200), height: 130, legend: {show: false}, cursor: {show: false},
		scales: {x: {min: history.end - 86400, max: history.end, range: [history.end - 86400, history.end]}, y: {range: [0, 100]}},
		axes: [{...axis, values: (plot, splits) => splits.map(at => new Date(at * 1000).toTimeString().slice(0, 5)), space: 60},
			{...axis, size: 40, splits: () => [0, 50, 100]}],
		series: [{}, line('use', true), line('synthetic', true), line('memory')],
	}, [times, use, synthetic, padded(card.memory)], box));
}

function card(row) {
	const synthetic = row.synthetic_percent || 0, badges = [];
	const badge = (kind, text) => badges.push(make('span', {class: `badge ${kind}`}, text));
	if (row.synthetic)
		badge('synthetic', say('synthetic load') + (synthetic ? ` ${synthetic}\u00a0%` : ''));
	if (row.lost)
		badge('alarm', say('lost'));
	if (row.drained)
		badge('alarm', `${say('drained')}: ${say(row.drained)}`);
	if (row.xid)
		badge('alarm', `${say('fault')}: Xid ${row.xid}`);
	if (row.idle_seconds >= 60)
		badge('quiet', `${say('idle for')} ${span(row.idle_seconds)}`);
	const util = row.util_percent || 0, memory = known(row.memory_bytes) && row.memory_total_bytes;
	const percent = memory ? 100 * row.memory_bytes / row.memory_total_bytes : 0;
	return make('article', {}, make('h3', {}, `${row.card} · ${row.name}`), make('p', {}, ...badges),
		bar('in use', [['use', Math.max(util - synthetic, 0)], ['synthetic', synthetic]], cell('util_percent', row.util_percent)),
		bar('memory', [['memory', percent]], memory ? `${bytes(row.memory_bytes)} / ${bytes(row.memory_total_bytes)}` : '-'));
}

/* What a tenant's jobs have beyond its guarantee is of those of the group whose guarantee they do not use up. */
function borrowers(tenants) {
	const rows = [];
	for (const unit of ['cards', 'memory_bytes', 'compute_percent']) {
		const beyond = row => (row[`used_${unit}`] || 0) - (row[`guaranteed_${unit}`] || 0);
		for (const row of tenants.filter(row => beyond(row) > 0)) {
			const others = tenants.filter(other => other.group === row.group && other !== row), lenders = others.filter(other => beyond(other) < 0);
			if (![row, ...others].some(one => known(one[`guaranteed_${unit}`])))
				continue;
			rows.push({borrower: row.tenant, group: row.group, beyond_its_guarantee: cell(unit, beyond(row)) + (unit === 'cards' ? ` ${say('cards')}` : ''),
				of: lenders.length ? lenders.map(other => other.tenant) : say('room of no guarantee')});
		}
	}
	return rows;
}

/* ---- the page ---- */

function render(data) {
	const main = document.getElementById('main'), scrolled = [...main.querySelectorAll('.wide')].map(element => element.scrollLeft);
	const focused = [...main.querySelectorAll('[tabindex], input')].indexOf(document.activeElement);
	const title = `${say('GPUs of')} ${data.host}`, cards = data.cards.map(card);
	const [jobs, tenants] = [data.jobs, data.tenants].map(rows => rows.map(row => ({...row, tenant: row.tenant || say('no tenant')})));
	document.title = document.getElementById('title').textContent = title;
	document.getElementById('when').textContent = `${say('as of')} ${moment(data.at)}, ${say('written by loadline')} ${data.version}`;
	charts.forEach(plot => plot.destroy());
	charts = [];
	const colors = [['use', 'in use by work'], ['synthetic', 'synthetic load'], ['memory', 'memory']];
	const legend = make('p', {class: 'quiet'}, ...colors.map(([kind, text]) => make('span', {class: `key ${kind}`}, say(text))));
	const choice = make('input', {type: 'checkbox', id: 'commands'});
	choice.checked = showsCommands;
	choice.addEventListener('change', () => { showsCommands = choice.checked; render(data); });
	const hasCommands = [...data.jobs, ...data.queue].some(row => row.command);
	main.replaceChildren(
		section('Cards', legend, cards.length ? make('div', {id: 'cards'}, ...cards) : make('p', {class: 'quiet'}, say('none'))),
		section('Tenants', table(say('Tenants'), tenants)),
		section('Who uses what of whom', table(say('Who uses what of whom'), borrowers(tenants))),
		section('Jobs on the cards', ...(data.hides_others ? [make('p', {class: 'quiet'}, say('Jobs of others are hidden by the configuration.'))]
			: [...(hasCommands ? [make('p', {}, choice, make('label', {for: 'commands'}, ` ${say('Show command lines')}`))] : []), table(say('Jobs on the cards'), jobs)])),
		section('Queue', table(say('Queue'), data.queue)),
		section('Reservations, maintenance, drained cards', table(say('Reservations, maintenance, drained cards'), data.windows)),
		section('Decisions', table(say('Decisions'), data.decisions.sort((a, b) => b.at - a.at))));
	data.cards.forEach((row, i) => chart(cards[i], data.history, row.uuid));
	main.querySelectorAll('.wide').forEach((element, i) => { element.scrollLeft = scrolled[i] || 0; });
	if (focused >= 0)
		[...main.querySelectorAll('[tabindex], input')][focused]?.focus({preventScroll: true});
	tell(data);
}

/* A page that stands still must not look like a machine that does. */
function tell(data, unread) {
	const age = Date.now() / 1000 - (data ? data.at : 0), state = document.getElementById('state'), texts = [];
	const isOld = data && age > 3 * data.every_seconds + 5;
	if (unread)
		texts.push(say('data.js cannot be read.'));
	if (isOld)
		texts.push(say('The data are old: they were written {0} ago. Has loadline-exporter stopped?', span(age)));
	if (data && age < -60)
		texts.push(say('The clock of this computer is {0} behind the machine\'s.', span(-age)));
	if (data && !data.up)
		texts.push(say('loadlined does not reply: {0}', data.error));
	else if (data && (data.sensor_silent_seconds === null || data.sensor_silent_seconds >= 15))
		texts.push(say('The sensor is silent: the cards are not known.'));
	document.body.classList.toggle('is-old', Boolean(isOld || unread));
	state.hidden = !texts.length;
	if (state.textContent !== texts.join(' '))
		state.textContent = texts.join(' ');
}

/* A script, since a page that was opened as a file may read no other file. */
function load() {
	const script = make('script', {src: `data.js?${Date.now()}`});
	let shown = window.loadline_data;
	script.addEventListener('load', () => { script.remove(); if (shown?.at !== loadline_data.at) render(loadline_data); else tell(shown); });
	script.addEventListener('error', () => { script.remove(); tell(window.loadline_data, true); });
	document.head.append(script);
}

document.documentElement.lang = isChinese ? 'zh-CN' : 'en';
load();
setInterval(load, 10000);
let width = innerWidth;
addEventListener('resize', () => { if (innerWidth !== width && window.loadline_data) { width = innerWidth; render(loadline_data); } });
