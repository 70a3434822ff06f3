// Marks, prices and advice in the flavor step of the launch dialogue. A second directive of the
// same name is AngularJS's way to add to an element of others.
(function () {
  'use strict';

  angular
    .module('ebbtide', ['horizon.dashboard.project.workflow.launch-instance'])
    .factory('ebbtideMarket', market)
    .directive('hzDynamicTable', flavorTable);

  market.$inject = ['horizon.framework.util.http.service'];

  function market(http) {
    var prices;
    var specs;
    var advice = {};
    return { price: price, advise: advise, preemptible: preemptible };

    function preemptible(flavor) {
      var extras = flavor.extras || extrasOf(flavor.id) || {};
      var word = String(extras['ebbtide:preemptible'] || '').trim().toLowerCase();
      return ['1', 't', 'true', 'on', 'y', 'yes'].indexOf(word) >= 0;
    }

    // The newest Horizon lists flavors without their extra specs in this dialogue.
    function extrasOf(id) {
      if (!specs) {
        specs = {};
        var query = { params: { is_public: true, get_extras: true } };
        http.get('/api/nova/flavors/', query).then(function (answer) {
          answer.data.items.forEach(function (item) { specs[item.id] = item.extras; });
        }, function () {
          // Without them nothing is marked, as without the dialogue's own list.
        });
      }
      return specs[id];
    }

    function price(name) {
      if (!prices) {
        prices = {};
        http.get('/api/ebbtide/prices/').then(function (answer) {
          answer.data.items.forEach(function (item) { prices[item.flavor] = item.price; });
        }, function () {
          // Marks stay without prices.
        });
      }
      return prices[name] || '';
    }

    function advise(name) {
      if (!advice[name]) {
        advice[name] = { text: gettext('Asking for advice …') };
        http.get('/api/ebbtide/advice/', { params: { flavor: name } }).then(function (answer) {
          advice[name].text = words(answer.data);
        }, function (answer) {
          advice[name].text = String(answer.data || '');
        });
      }
      return advice[name].text;
    }

    function words(found) {
      if (found.too_little) {
        return found.too_little;
      }
      return gettext('Risk of being displaced:') + ' ' + found.chances.map(function (row) {
        return row.within_hours + ' h: ' + Math.round(row.chance * 1000) / 10 + ' %';
      }).join(', ');
    }
  }

  flavorTable.$inject = ['ebbtideMarket'];

  function flavorTable(ebbtideMarket) {
    return { restrict: 'E', priority: 100, link: { pre: link } };

    function link(scope, element, attributes) {
      var ctrl = scope.ctrl;
      if (attributes.name !== 'allocated-flavor' || !ctrl || !ctrl.availableTableConfig) {
        return;
      }
      add(ctrl.availableTableConfig.columns, '');
      add(ctrl.allocatedTableConfig.columns,
        '<div class="ebbtide-advice">{$ item.ebbtide.advise(item.name) $}</div>');
      scope.$watchCollection(function () { return ctrl.availableFlavorFacades; }, function (rows) {
        rows.forEach(function (row) { row.ebbtide = ebbtideMarket; });
      });
    }

    function add(columns, advice) {
      if (columns.some(function (column) { return column.id === 'ebbtide'; })) {
        return;
      }
      columns.push({
        id: 'ebbtide',
        title: gettext('Preemptible'),
        priority: 1,
        template: '<span ng-if="item.ebbtide.preemptible(item)">' +
          '<span class="label label-warning ebbtide-mark">' + gettext('Preemptible') +
          '</span> {$ item.ebbtide.price(item.name) $}' + advice + '</span>'
      });
    }
  }
}());
