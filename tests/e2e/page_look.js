/* Put beside the page by page_browser.bats: waits until the page is drawn, lets axe-core judge it, and leaves what it found in the document. */
'use strict';

const wait = setInterval(async () => {
	if (!document.querySelector('#main section'))
		return;
	clearInterval(wait);
	for (const box of document.querySelectorAll(location.hash === '#commands' ? '#commands' : '.none'))
		box.click();
	const found = await axe.run(document, {resultTypes: ['violations', 'incomplete']});
	const told = document.createElement('pre');
	told.id = 'found';
	told.textContent = JSON.stringify({
		language: document.documentElement.lang, heading: document.querySelector('h2').textContent, state: document.getElementById('state').textContent,
		text: document.getElementById('main').innerText, images: document.images.length, charts: document.querySelectorAll('canvas').length,
		overflows: document.documentElement.scrollWidth > innerWidth, passes: found.passes.length,
		violations: found.violations.map(one => `${one.id}: ${one.nodes.map(node => node.target.join(' ')).join(', ')}`),
	});
	document.body.append(told);
}, 50);
